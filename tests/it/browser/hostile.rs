//! What others write, where it is meant to do harm: nothing runs, nothing is asked for, and the page stays usable.

use serde_json::{Value, json};

use super::{nothing, see};

#[tokio::test]
async fn no_text_of_others_runs_or_asks_for_anything() {
    assert_harmless("withPolicy").await;
}

#[tokio::test]
async fn nor_without_the_help_of_the_browsers_policy() {
    assert_harmless("withoutPolicy").await;
}

async fn assert_harmless(run: &str) {
    let Some(seen) = see("vectors.mjs", &[run]).await else { return };
    // The watch itself sees what happens on a page that takes no care.
    let control = json!({"ran": ["xss 1", "xss 2"], "requests": ["http://evil.test/a.png"]});
    assert_eq!(seen["control"], control);
    let (vectors, names) = (seen["vectors"].as_u64().unwrap(), seen["names"].as_u64().unwrap());
    assert!(vectors >= 200 && names >= 20, "{vectors} texts, {names} names");
    // `residue`: elements or attributes that no view may have, and texts that come out otherwise in pieces than whole.
    let mut expected = nothing();
    expected["residue"] = json!([]);
    assert_eq!(seen["seen"], expected);
}

#[tokio::test]
async fn what_is_too_much_is_shown_in_parts_and_the_next_click_is_answered() {
    let Some(seen) = see("heavy.mjs", &[]).await else { return };
    assert_eq!((&seen["watched"], &seen["control"]), (&nothing(), &json!(true)), "a page that is busy is seen as such");
    let seen = seen["seen"].as_object().unwrap();
    assert!(seen.len() >= 80, "{} cases", seen.len());
    for (case, outcome) in seen {
        // How long a click would have waited is told in place of `true`, as is the number of elements.
        assert_eq!((&outcome["isAnswered"], &outcome["isBounded"]), (&json!(true), &json!(true)), "{case}: {outcome}");
    }
    let all = "600 of 5000 steps are drawn. All of them are in the list.";
    let lost = "2 connections cannot be drawn: a step that they name is not there (gone, lost).";
    let rows: [(&str, &str, Value, &str); 11] = [
        ("a table of 5 MB", "saysWhatIsLeft", json!(true), "how much is not shown"),
        ("a table of 5 MB", "showsMore", json!(true), "and it can be"),
        ("a code block of 100 kB, by small pieces", "isExact", json!(true), "nothing is lost in between"),
        ("a graph of 100 steps", "layout", json!("dagre"), "a graph that people draw"),
        ("a graph of 500 steps", "layout", json!("layers"), "one that they do not"),
        ("a graph of 500 steps", "nodes", json!(500), "all of it is drawn"),
        ("a graph of 500 steps", "chosen", json!("Step 321"), "and can be used"),
        ("5000 steps", "notes", json!([all]), "what is not drawn"),
        ("a circle", "nodes", json!(5), "no beginning, no end"),
        ("ids twice and steps that are not there", "notes", json!([lost]), "what cannot be drawn"),
        ("arguments of 5 MB", "warned", json!(true), "what cannot be read whole should not be approved"),
    ];
    for (case, what, expected, reason) in rows {
        assert_eq!(seen[case][what], expected, "{case}: {reason}");
    }
}

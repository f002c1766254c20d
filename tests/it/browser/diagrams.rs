//! Diagrams in Mermaid: drawn when somebody wants that, by keyboard too, and harmless whatever a model or their library does.

use serde_json::json;

use super::{nothing, see};

#[tokio::test]
async fn diagrams_are_drawn_when_somebody_wants_that() {
    let Some(mut seen) = see("diagrams.mjs", &["used"]).await else { return };
    assert_eq!(seen["watched"].take(), nothing());
    // What each says to those who do not see it.
    let kinds = json!({
        "flow chart": "Diagram: Delivery, Yes, No, Customer places order, In stock?, Reserve items, Order more from supplier, Database, Pack, Ship",
        "sequence": "Diagram: Server, User, alt, [ok], [refused], Both <b>wait</b>, loop, [Every minute], Request, 1, 200 OK, 2, 403, 3, Ping, 4",
        "classes": "Diagram: lays, 1, *, Animal, +int age, +isMammal() : bool, Duck, +String beakColor, +swim(), Egg",
        "states": "Diagram: push, Still, Moving, Fast, Slow",
        "entities": "Diagram: places, contains, CUSTOMER, string, name, PK, email, ORDER, LINE_ITEM",
        "gantt": "Diagram: 2026-01-01, 2026-01-03, 2026-01-05, 2026-01-07, 2026-01-09, 2026-01-11, 2026-01-13, 2026-01-15, 2026-01-17, 2026-01-19, 2026-01-21, 2026-01-23, 2026-01-25, 2026-01-27, 2026-01-29, 2026-01-31, 2026-02-01, 2026-02-03, 2026-02-05, Code, Test, Roll out, Build, Ship, Release",
        "pie": "Diagram: 40%, 60%, Orders, Open, Done",
        "git": "Diagram: main, develop, one, two, three",
        "mind map": "Diagram: Plans, Goals, Short, Long, Risks, Money, Time",
        "journey": "Diagram: Cat, Me, Work, Tea, Code, My day",
        "timeline": "Diagram: 2024, One, 2025, Two, Three, History",
        "quadrants": "Diagram: B, A, Low, High, Small, Large, Reach",
        "chart": "Diagram: Sales, jan, feb, mar, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0, Revenue",
        "requirements": "Diagram: <<satisfies>>, <<Requirement>>, test_req, ID: 1, Text: the test, Risk: High, Verification: Test, <<Element>>, test_entity, Type: simulation",
        "kanban": "Diagram: Todo, Done, Write, Read",
        "another word for it": "Diagram: Start here, End",
        "behind settings and remarks": "Diagram: One, Two, Orders",
        "colours of its own": "Diagram: Light, Dark"
    });
    assert_eq!(seen["kinds"], kinds);
    assert_eq!(seen["isSameInDark"], json!(true));
    let drawn = json!({
        "before": [
            "Draw",
            true,
            0
        ],
        "askedBefore": 0,
        "drawn": [
            "Show code",
            false,
            1,
            "draw",
            "The diagram is drawn."
        ],
        "isReached": [
            "sb-diagram",
            "region",
            "Diagram"
        ],
        "colours": [
            false,
            true,
            false
        ],
        "back": [
            "Draw",
            true,
            0,
            "draw",
            "The diagram is drawn."
        ],
        "again": [
            "Show code",
            false,
            1
        ],
        "frames": 0
    });
    assert_eq!(seen["use"], drawn, "there and back, in the colours of the page");
    let refused = json!({
        "a line that is none": [
            "This diagram cannot be drawn: line 3 is not understood.",
            true,
            "Draw"
        ],
        "words that end early": [
            "This diagram cannot be drawn: line 2 is not understood.",
            true,
            "Draw"
        ],
        "no kind": [
            "Diagrams of this kind are not drawn here.",
            true,
            "Draw"
        ],
        "another kind": [
            "Diagrams of this kind are not drawn here.",
            true,
            "Draw"
        ],
        "nothing": [
            "Diagrams of this kind are not drawn here.",
            true,
            "Draw"
        ],
        "too long": [
            "This diagram is too large to be drawn.",
            true,
            "Draw"
        ],
        "too many lines": [
            "This diagram is too large to be drawn.",
            true,
            "Draw"
        ]
    });
    assert_eq!(seen["refused"], refused, "a sentence, and the code stays");
    assert_eq!(seen["german"], json!(["Zeichnen", "Diagramme dieser Art werden hier nicht gezeichnet."]));
    assert_eq!(seen["unreachable"], json!("The server cannot be reached."));
}

#[tokio::test]
async fn no_diagram_runs_or_asks_for_anything() {
    let Some(mut seen) = see("diagrams.mjs", &["byDiagrams"]).await else { return };
    let (count, drawn) = (seen["count"].as_u64().unwrap(), seen["drawn"].as_u64().unwrap());
    assert!(count >= 100 && drawn >= count / 2 && drawn + seen["refused"].as_u64().unwrap() == count, "{seen:#}");
    // `residue`: elements and addresses that no picture may have; `kept`: frames that stay.
    assert_eq!((&seen["residue"], &seen["kept"]), (&json!([]), &json!(0)));
    // The library puts words into its document to measure them: its policy stops what they try there.
    let stopped = seen["watched"]["inFrames"].take();
    assert!(stopped.as_array().unwrap().iter().any(|what| what == "script-src-attr inline "), "{stopped}");
    seen["watched"]["inFrames"] = json!([]);
    assert_eq!(seen["watched"], nothing());
}

/// A library that does what it likes reaches nothing, and what it gives is a picture.
#[tokio::test]
async fn the_library_of_diagrams_can_do_no_harm() {
    let Some(mut seen) = see("diagrams.mjs", &["byLibrary"]).await else { return };
    let mut watched = nothing();
    // The frame in the frame, which is stopped.
    watched["navigations"] = json!(["chrome-error://chromewebdata/"]);
    watched["inFrames"] = json!([
        "connect-src /v1/agent/profiles ",
        "connect-src http://evil.test/fetch ",
        "frame-src http://evil.test ",
        "img-src data ",
        "img-src http://evil.test/image ",
        "script-src eval ",
        "script-src-attr inline ",
        "script-src-elem http://evil.test/script.js ",
        "style-src-elem http://evil.test/style ",
        "worker-src blob "
    ]);
    let taken = json!({
        // What it could do would be told in front.
        "alt": "Diagram: <img src=x onerror=xss(7)>",
        "image": true,
        "kept": 0,
        "watched": watched,
    });
    assert_eq!(seen["takenOver"], taken);
    let endless = json!({
        "note": "It takes too long to draw this diagram.",
        "isInTime": true,
        "isAwake": true,
        "kept": 0,
        "watched": nothing(),
    });
    assert_eq!(seen["endless"].take(), endless);
    let nonsense = json!([
        "It takes too long to draw this diagram.",
        "This diagram cannot be drawn.",
        "This diagram is too large to be drawn."
    ]);
    assert_eq!(seen["nonsense"], nonsense);
    assert_eq!(seen["alone"], json!("null"), "a document without an origin, whoever shows it");
}

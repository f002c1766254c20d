//! Words in which the two databases differ. A text has a token for each, `@now`, and the connection fills in its
//! database's words: the same text each time, so that it stays prepared.

use std::borrow::Cow;

/// The database whose words are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Dialect {
    Sqlite,
    Postgres,
}

/// A token and its replacements. Where one has a [`HOLE`], the token's text in parentheses goes there.
struct Token {
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// See [`Token`].
const HOLE: char = '?';

/// All tokens.
const TOKENS: [Token; 10] = [
    // The database's own time in milliseconds. Leases are kept by it, so replicas need not agree about the time, and no test
    // moves it.
    Token {
        name: "now",
        sqlite: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        // Asked once for a statement: by itself it changes from row to row, and no index is of use for it.
        postgres: "(SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))",
    },
    // Makes a `SELECT` hold its rows until the transaction ends. Rows that refer to them can still be added meanwhile. In
    // SQLite writers take turns, so there is nothing to hold.
    Token { name: "for_update", sqlite: "", postgres: "FOR NO KEY UPDATE" },
    // The same, without those that another transaction holds.
    Token { name: "skip_locked", sqlite: "", postgres: "FOR NO KEY UPDATE SKIP LOCKED" },
    // The greater one of what is in the parentheses behind it.
    Token { name: "greatest", sqlite: "MAX", postgres: "GREATEST" },
    // Whether what stands before it is one of the texts in a parameter that holds a JSON list of them. In PostgreSQL as an
    // array, so that each is looked up whatever the planner believes of the table.
    Token {
        name: "one_of",
        sqlite: "IN (SELECT value FROM json_each(?))",
        postgres: "= ANY (ARRAY(SELECT json_array_elements_text(CAST(? AS json))))",
    },
    // The rows `p` in a parameter that holds a JSON list of runs' new texts.
    Token {
        name: "progress",
        sqlite:
            "(SELECT value ->> 'run' AS run, value ->> 'turn' AS turn, value ->> 'at' AS at, value ->> 'piece' AS piece,
             value ->> 'event' AS event FROM json_each(?)) AS p",
        postgres: "json_to_recordset(CAST(? AS json)) AS p (run text, turn bigint, at bigint, piece text, event bigint)",
    },
    // The rows `n` in a parameter that holds a JSON list of names with ids.
    Token {
        name: "names",
        sqlite: "(SELECT value ->> 'id' AS id, value ->> 'name' AS name FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (id text, name text)",
    },
    // Goes before what a statement gives of the row that it has just made, and `@where_made` behind that. SQLite makes a
    // table for a `RETURNING` each time, which costs more than the change.
    Token { name: "giving", sqlite: "; SELECT", postgres: "RETURNING" },
    Token { name: "where_made", sqlite: "WHERE changes() > 0", postgres: "" },
    // Gives the `ChargedSeatRow` of the run `$1`, whose row a statement has just changed. In PostgreSQL the transaction
    // touches from here on what is its owner's.
    Token {
        name: "giving_seat",
        sqlite: "; SELECT tenant, user_id, conversation, run_seq, charged FROM runs WHERE id = $1 AND changes() > 0",
        postgres: "RETURNING tenant, user_id, conversation, run_seq, charged,
             set_config('app.tenant', '=' || tenant, true), set_config('app.user', '=' || user_id, true)",
    },
];

impl Dialect {
    /// `text` with its tokens filled in.
    pub(in crate::store) fn fill(self, text: Cow<'static, str>) -> Cow<'static, str> {
        let Some((before, mut rest)) = text.split_once('@') else { return text };
        let mut filled = before.to_owned();
        loop {
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            let stands_for = self.stands_for(name);
            match stands_for.split_once(HOLE) {
                None => filled.push_str(stands_for),
                Some((head, tail)) => {
                    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
                    let (inside, after) = inside.unwrap_or(("", rest));
                    filled.extend([head, inside, tail]);
                    rest = after;
                }
            }
            let Some((before, after)) = rest.split_once('@') else { break };
            filled.push_str(before);
            rest = after;
        }
        filled.push_str(rest);
        Cow::Owned(filled)
    }

    /// The replacement of a token; its name where there is none, which no database takes.
    fn stands_for(self, name: &str) -> &str {
        TOKENS.iter().find(|token| token.name == name).map_or(name, |token| match self {
            Self::Sqlite => token.sqlite,
            Self::Postgres => token.postgres,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Dialect::{Postgres, Sqlite};

    #[test]
    fn tokens_become_what_each_database_writes() {
        let rows = [
            (Sqlite, "SELECT 1", "SELECT 1", "no token"),
            (Sqlite, "SELECT @greatest(a, $2)", "SELECT MAX(a, $2)", "a name"),
            (Postgres, "SELECT @greatest(a, $2)", "SELECT GREATEST(a, $2)", "the other's name"),
            (
                Sqlite,
                "x @one_of($3) AND y",
                "x IN (SELECT value FROM json_each($3)) AND y",
                "with what is in parentheses",
            ),
            (Postgres, "a @for_update", "a FOR NO KEY UPDATE", "at the end"),
            (Sqlite, "a @for_update", "a ", "nothing"),
            (Sqlite, "b @giving c @where_made", "b ; SELECT c WHERE changes() > 0", "two"),
            (Postgres, "b @giving c @where_made", "b RETURNING c ", "two of the other's"),
            (Sqlite, "SELECT @unknown", "SELECT unknown", "none of ours, which is an error when it is run"),
        ];
        for (dialect, text, filled, reason) in rows {
            assert_eq!(dialect.fill(text.into()), filled, "{reason}");
        }
    }
}

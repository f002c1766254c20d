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
const TOKENS: [Token; 23] = [
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
    // Go around a `SELECT` of what stands before them, for the same reason.
    Token { name: "among", sqlite: "IN (", postgres: "= ANY (ARRAY(" },
    Token { name: "end_among", sqlite: ")", postgres: "))" },
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
    // The rows `n` in a parameter that holds a JSON list of new signals.
    Token {
        name: "signals",
        sqlite: "(SELECT value ->> 'id' AS id, value ->> 'tenant' AS tenant, value ->> 'seq' AS seq, value ->> 'name' AS name,
             value ->> 'dedupe_key' AS dedupe_key, value ->> 'actor' AS actor, value ->> 'subject_type' AS subject_type,
             value ->> 'subject_id' AS subject_id, value ->> 'correlation' AS correlation,
             value ->> 'causation' AS causation, value ->> 'source' AS source, value ->> 'occurred_at' AS occurred_at,
             value ->> 'body' AS body FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (id text, tenant text, seq bigint, name text, dedupe_key text,
             actor text, subject_type text, subject_id text, correlation text, causation text, source text,
             occurred_at bigint, body text)",
    },
    // The rows `n` in a parameter that holds a JSON list of the numbers that tenants' signals have come to.
    Token {
        name: "numbers",
        sqlite: "(SELECT value ->> 'tenant' AS tenant, value ->> 'seq' AS seq FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (tenant text, seq bigint)",
    },
    // The rows `n` in a parameter that holds a JSON list of new deliveries.
    Token {
        name: "hearers",
        sqlite: "(SELECT value ->> 'id' AS id, value ->> 'tenant' AS tenant, value ->> 'signal' AS signal,
             value ->> 'subscriber' AS subscriber FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (id text, tenant text, signal text, subscriber text)",
    },
    // The rows `n` in a parameter that holds a JSON list of deliveries that have ended.
    Token {
        name: "delivered",
        sqlite: "(SELECT value ->> 'id' AS id, value ->> 'token' AS token, value ->> 'state' AS state,
             value ->> 'status' AS status, value ->> 'error' AS error, value ->> 'in_ms' AS in_ms FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (id text, token bigint, state text, status bigint, error text,
             in_ms bigint)",
    },
    // The rows `n` in a parameter that holds a JSON list of directives as they are now.
    Token {
        name: "changed",
        sqlite: "(SELECT value ->> 'id' AS id, value ->> 'tenant' AS tenant, value ->> 'user_id' AS user_id,
             value ->> 'status' AS status, value ->> 'reason' AS reason, value ->> 'max_attempts' AS max_attempts,
             value ->> 'due_at' AS due_at, value ->> 'updated_at' AS updated_at, value ->> 'completed_at' AS completed_at,
             value ->> 'decided_by' AS decided_by, value ->> 'decided_at' AS decided_at, value ->> 'in_doubt' AS in_doubt,
             value ->> 'body' AS body FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (id text, tenant text, user_id text, status text, reason text,
             max_attempts bigint, due_at bigint, updated_at bigint, completed_at bigint, decided_by text,
             decided_at bigint, in_doubt bigint, body text)",
    },
    // The rows `n` in a parameter that holds a JSON list of new lines of the audit record.
    Token {
        name: "lines",
        sqlite: "(SELECT value ->> 'nth' AS nth, value ->> 'id' AS id, value ->> 'chain' AS chain, value ->> 'act' AS act,
             value ->> 'actor' AS actor, value ->> 'on_behalf_of' AS on_behalf_of,
             value ->> 'conversation' AS conversation, value ->> 'run' AS run, value ->> 'call' AS call,
             value ->> 'tool' AS tool, value ->> 'subject' AS subject, value ->> 'arguments' AS arguments,
             value ->> 'outcome' AS outcome, value ->> 'reason' AS reason, value ->> 'times' AS times
             FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (nth bigint, id text, chain text, act text, actor text,
             on_behalf_of text, conversation text, run text, call text, tool text, subject text, arguments text,
             outcome text, reason text, times bigint)",
    },
    // The rows `n` in a parameter that holds a JSON list of lines with their places in the chain.
    Token {
        name: "sealed",
        sqlite: "(SELECT value ->> 'entry' AS entry, value ->> 'seq' AS seq, value ->> 'previous' AS previous,
             value ->> 'digest' AS digest FROM json_each(?)) AS n",
        postgres: "json_to_recordset(CAST(? AS json)) AS n (entry bigint, seq bigint, previous text, digest text)",
    },
    // The words of a text for the index, in a parameter that holds them with blanks between them.
    Token { name: "words", sqlite: "?", postgres: "array_to_tsvector(string_to_array(?, ' '))" },
    // The rows of a table are looked up by their number alone. PostgreSQL has none.
    Token { name: "by_number", sqlite: "NOT INDEXED", postgres: "" },
    // Whether the row `t` of the index has all words of a parameter, in which those that may go on end with `*`.
    Token {
        name: "found",
        sqlite: "t.id IN (SELECT rowid FROM search_index WHERE search_index MATCH ?)",
        postgres: "t.words @@ CAST(replace(replace(?, '*', ':*'), ' ', ' & ') AS tsquery)",
    },
    // The month of a day, as `2026-11`.
    Token {
        name: "month",
        sqlite: "strftime('%Y-%m', (?) * 86400, 'unixepoch')",
        postgres: "to_char(to_timestamp((?) * 86400) AT TIME ZONE 'UTC', 'YYYY-MM')",
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
    /// `text` with its tokens filled in, as the database gets it. A log at `trace` shows it; it has no values.
    pub(in crate::store) fn fill(self, text: Cow<'static, str>) -> Cow<'static, str> {
        let filled = self.replaced(text);
        tracing::trace!(db.system.name = ?self, db.query.text = %filled, "a statement is said");
        filled
    }

    fn replaced(self, text: Cow<'static, str>) -> Cow<'static, str> {
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

//! From the database's column types to the widget's: the column type for each PostgreSQL type.

use crate::chat::line::one_line;

/// Database types by the widget's column type; every other one is text.
pub const PG_TYPES: &[(&str, &[&str])] = &[
    (
        "number",
        &[
            "smallint",
            "integer",
            "int",
            "int2",
            "int4",
            "int8",
            "bigint",
            "decimal",
            "numeric",
            "real",
            "float",
            "float4",
            "float8",
            "double precision",
            "smallserial",
            "serial",
            "bigserial",
            "serial2",
            "serial4",
            "serial8",
            "money",
        ],
    ),
    (
        "datetime",
        &[
            "date",
            "time",
            "timetz",
            "time without time zone",
            "time with time zone",
            "timestamp",
            "timestamptz",
            "timestamp without time zone",
            "timestamp with time zone",
            "interval",
        ],
    ),
    ("boolean", &["boolean", "bool"]),
    ("uuid", &["uuid"]),
];

/// The column type for the PostgreSQL type `pg_type`, written as introspection does: `numeric(10,2)`, `timestamp(3)
/// without time zone`, `text[]`. `string` for text, JSON, arrays and unknown types.
pub fn column_type(pg_type: &str) -> &'static str {
    let bare = without_modifier(pg_type);
    PG_TYPES.iter().find(|(_, names)| names.contains(&bare.as_str())).map_or("string", |(column_type, _)| *column_type)
}

/// The type's name in lower case, single blanks, without `(10,2)`.
fn without_modifier(pg_type: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in pg_type.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c.to_ascii_lowercase()),
            _ => {}
        }
    }
    one_line(&kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_types_become_column_types() {
        for (pg_type, expected, reason) in [
            ("integer", "number", "a whole number"),
            ("NUMERIC(10, 2)", "number", "case and precision do not matter"),
            ("bigserial", "number", "a serial is a number"),
            ("money", "number", "money is a number"),
            ("date", "datetime", "a day"),
            ("timestamp(3) without time zone", "datetime", "the modifier sits inside the name"),
            ("interval", "datetime", "an interval counts as time"),
            ("bool", "boolean", "the short name"),
            ("uuid", "uuid", "an id"),
            ("character varying(255)", "string", "text"),
            ("jsonb", "string", "JSON is text"),
            ("integer[]", "string", "an array of numbers is not a number"),
            ("_int4", "string", "an array by its internal name"),
            ("USER-DEFINED", "string", "unknown to us"),
            ("", "string", "nothing given"),
        ] {
            assert_eq!(column_type(pg_type), expected, "{reason}");
        }
    }
}

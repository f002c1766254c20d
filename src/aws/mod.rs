//! Who this server is to Amazon's services: the usual variables that say so, and with the feature `aws` the chain of credentials
//! behind them, for files in S3 and models on Bedrock.
//!
//! **Invariant:** the variables' values are secrets: `Debug` shows none.

#[cfg(feature = "aws")]
mod chain;
#[cfg(feature = "aws")]
mod clients;
#[cfg(feature = "aws")]
mod signer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Uri;
use url::Url;

#[cfg(feature = "aws")]
pub use self::chain::{builder, credentials};
#[cfg(feature = "aws")]
pub use self::signer::{SignError, Signer};

/// The region that is asked where none is named.
pub const REGION: &str = "us-east-1";

/// The variables that are read. Profiles in `~/.aws` are not.
const READ: [&str; 11] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
];

/// The usual variables of AWS, as far as they are set.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(Arc<BTreeMap<&'static str, String>>);

impl Variables {
    /// Those of `env`, without spaces and line ends around them, which files of secrets often have.
    pub fn of(env: &BTreeMap<String, String>) -> Self {
        let set = READ.into_iter().filter_map(|name| {
            let value = env.get(name)?.trim();
            (!value.is_empty()).then(|| (name, value.to_owned()))
        });
        Self(Arc::new(set.collect()))
    }

    /// The value of `name`, where it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The region: `named`, or where it is empty that of the variables, or else the usual one.
    pub fn region<'a>(&'a self, named: &'a str) -> &'a str {
        let of_variables = || self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"));
        Some(named).filter(|named| !named.is_empty()).or_else(of_variables).unwrap_or(REGION)
    }

    /// The variable that lacks or is wrong, and why: a key that is only half set, what is no region, what is no address.
    pub fn mistake(&self) -> Option<(&'static str, &'static str)> {
        let wrong = |name| self.get(name).is_some_and(|region| !is_region(region)).then_some(name);
        if let Some(name) = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().find_map(wrong) {
            return Some((name, "must be the name of a region, such as eu-central-1"));
        }
        let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        if self.get(full).is_some_and(|address| !is_address(address)) {
            return Some((full, "must be an http or https address"));
        }
        let relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        let is_path = |path: &str| path.starts_with('/') && is_address(&format!("http://127.0.0.1{path}"));
        if self.get(relative).is_some_and(|path| !is_path(path)) {
            return Some((relative, "must be the path of an address, with a slash before it"));
        }
        let key = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        match key.map(|name| self.get(name).is_some()) {
            [true, false] => Some((key[1], "is required beside AWS_ACCESS_KEY_ID")),
            [false, true] => Some((key[0], "is required beside AWS_SECRET_ACCESS_KEY")),
            [true, true] | [false, false] => None,
        }
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whether `text` can be asked: by its own words, and by those of the client.
fn is_address(text: &str) -> bool {
    text.parse::<Uri>().is_ok() && Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether `text` may be the name of a region, such as `eu-central-1`.
pub fn is_region(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(set: &[(&str, &str)]) -> Variables {
        Variables::of(&set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn variables_are_read_and_never_shown() {
        let set = variables(&[("AWS_SECRET_ACCESS_KEY", " s3cr3t\n"), ("AWS_SESSION_TOKEN", " "), ("HOME", "/root")]);
        assert_eq!(set.get("AWS_SECRET_ACCESS_KEY"), Some("s3cr3t"));
        assert_eq!((set.get("AWS_SESSION_TOKEN"), set.get("HOME")), (None, None));
        assert_eq!(format!("{set:?}"), r#"{"AWS_SECRET_ACCESS_KEY"}"#);
        assert_eq!(set.mistake().unwrap().0, "AWS_ACCESS_KEY_ID", "the other half of a key");
    }

    #[test]
    fn a_variable_that_cannot_be_sent_is_a_mistake() {
        let (full, relative) = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        for (name, value, is_mistake) in [
            ("AWS_REGION", "eu-central-1", false),
            ("AWS_REGION", "eu central", true),
            ("AWS_DEFAULT_REGION", "EU", true),
            (full, "http://169.254.170.23/v1/credentials", false),
            (full, "http://[fd00:ec2::23]/v1/credentials", false),
            (full, "http://a b/", true),
            (full, "/v1/credentials", true),
            (relative, "/v2/credentials/1", false),
            (relative, "v2/credentials/1", true),
            (relative, "/v2/cred entials", true),
        ] {
            let expected = is_mistake.then_some(name);
            assert_eq!(variables(&[(name, value)]).mistake().map(|(name, _)| name), expected, "{value}");
        }
    }

    #[test]
    fn a_region_is_named_or_of_the_variables() {
        type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let rows: [Row; 4] = [
            ("eu-west-1", &[("AWS_REGION", "eu-central-1")], "eu-west-1"),
            ("", &[("AWS_REGION", "eu-central-1"), ("AWS_DEFAULT_REGION", "us-west-2")], "eu-central-1"),
            ("", &[("AWS_DEFAULT_REGION", "us-west-2")], "us-west-2"),
            ("", &[], "us-east-1"),
        ];
        for (named, set, expected) in rows {
            assert_eq!(variables(set).region(named), expected, "{named} {set:?}");
        }
    }
}

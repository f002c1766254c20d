//! `[files.s3]`: a bucket of S3, or of a service that speaks it.

use serde::Deserialize;
use url::{Host, Url};

use crate::aws::is_region;

/// How the bucket of `files.url` is reached.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Config {
    /// Its region; empty is that of the usual variables.
    pub region: String,
    /// The address of another service than AWS; empty is AWS.
    pub endpoint: String,
    /// Whether the bucket's name is the first part of paths; else it is the first part of the host's name.
    pub path_style: bool,
    /// Seconds that one request may take, with a part of a file or a whole one.
    pub timeout_s: u64,
}

impl Default for S3Config {
    fn default() -> Self {
        Self { region: String::new(), endpoint: String::new(), path_style: true, timeout_s: 30 }
    }
}

/// A bucket, and where in it files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) name: String,
    pub(super) prefix: String,
}

impl Bucket {
    /// What stands behind `s3://`; `None` where it names no bucket.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, prefix) = text.split_once('/').unwrap_or((text, ""));
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let is_name = !name.is_empty() && name.bytes().all(fits) && name.starts_with(|c: char| c != '.');
        let prefix = prefix.trim_end_matches('/');
        let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(fits);
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_part);
        (is_name && is_prefix).then(|| Self { name: name.to_owned(), prefix: prefix.to_owned() })
    }
}

impl S3Config {
    /// What is wrong with it: keys of `[files]`, and why.
    pub(super) fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        let mut wrong = |key: &'static str, reason: &str| mistakes.push((key, reason.to_owned()));
        if !cfg!(feature = "aws") {
            wrong("url", "needs the feature aws, without which this server is built");
        }
        if !is_region(&self.region) {
            wrong("s3.region", "must be the name of a region, such as eu-central-1");
        }
        if !self.endpoint.is_empty() && !self.path_style && self.host_name().is_none() {
            wrong("s3.path_style", "must be true where the endpoint is no name: nothing can stand before an address");
        }
        if !(1..=600).contains(&self.timeout_s) {
            wrong("s3.timeout_s", "must be 1 to 600");
        }
        mistakes
    }

    /// The endpoint, where its host has a name.
    fn host_name(&self) -> Option<Url> {
        Url::parse(&self.endpoint).ok().filter(|url| matches!(url.host(), Some(Host::Domain(_))))
    }
}

#[cfg(feature = "aws")]
mod place {
    use std::sync::Arc;
    use std::time::Duration;

    use object_store::prefix::PrefixStore;
    use object_store::{ObjectStore, Result};
    use url::Url;

    use super::{Bucket, S3Config};
    use crate::aws::{self, Variables};

    impl S3Config {
        /// The objects of `bucket`. Nothing is asked yet.
        ///
        /// # Errors
        /// When the settings or the variables contradict each other.
        pub(in crate::files) fn objects(&self, bucket: &Bucket, variables: &Variables) -> Result<Arc<dyn ObjectStore>> {
            let (region, timeout) = (variables.region(&self.region), Duration::from_secs(self.timeout_s));
            let mut builder = aws::builder(timeout)
                .with_credentials(aws::credentials(variables, region, timeout)?)
                .with_region(region)
                .with_bucket_name(&bucket.name)
                .with_virtual_hosted_style_request(!self.path_style)
                // Not every service deletes several at once, and one at a time is all that is deleted here.
                .with_disable_bulk_delete(true);
            if !self.endpoint.is_empty() {
                // Who names one without encryption has chosen it.
                let is_plain = Url::parse(&self.endpoint).is_ok_and(|url| url.scheme() == "http");
                builder = builder.with_endpoint(self.bucket_endpoint(&bucket.name)).with_allow_http(is_plain);
            }
            let objects = builder.build()?;
            Ok(match bucket.prefix.is_empty() {
                true => Arc::new(objects),
                false => Arc::new(PrefixStore::new(objects, bucket.prefix.as_str())),
            })
        }

        /// The endpoint; with the bucket before its host where it belongs there.
        fn bucket_endpoint(&self, bucket: &str) -> String {
            let mut endpoint = self.endpoint.trim_end_matches('/').to_owned();
            if !self.path_style
                && let Some(mut url) = self.host_name()
                && let Some(host) = url.host_str().map(|host| format!("{bucket}.{host}"))
                && url.set_host(Some(&host)).is_ok()
            {
                url.as_str().trim_end_matches('/').clone_into(&mut endpoint);
            }
            endpoint
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_bucket_stands_in_the_path_or_before_the_host() {
            let at = |endpoint: &str, path_style| {
                let config = S3Config { endpoint: endpoint.to_owned(), path_style, ..S3Config::default() };
                config.bucket_endpoint("b")
            };
            assert_eq!(at("http://minio:9000/", true), "http://minio:9000");
            assert_eq!(at("https://s3.example.com/", false), "https://b.s3.example.com");
            assert_eq!(at("https://s3.example.com:9000", false), "https://b.s3.example.com:9000");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_a_name_and_may_have_a_prefix() {
        let bucket = |name: &str, prefix: &str| Some(Bucket { name: name.to_owned(), prefix: prefix.to_owned() });
        let rows = [
            ("files", bucket("files", "")),
            ("files/", bucket("files", "")),
            ("my.files-1/prod/switchboard/", bucket("my.files-1", "prod/switchboard")),
            ("", None),
            ("/prod", None),
            ("files//prod", None),
            ("files/../prod", None),
            ("key:secret@files", None),
            ("files?region=eu", None),
        ];
        for (text, expected) in rows {
            assert_eq!(Bucket::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let config = S3Config {
            region: "EU west".to_owned(),
            endpoint: "http://127.0.0.1:9000".to_owned(),
            path_style: false,
            timeout_s: 0,
        };
        let keys: Vec<_> = config.mistakes().into_iter().map(|(key, _)| key).filter(|key| *key != "url").collect();
        assert_eq!(keys, ["s3.region", "s3.path_style", "s3.timeout_s"]);
    }
}

//! What a service of AWS does with a signed request: it signs it once more and compares. Checked with Amazon's own examples:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The key of Amazon's examples, which is nobody's.
pub const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";

/// Its secret.
pub const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// A request as it came.
pub struct Signed<'a> {
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

impl Signed<'_> {
    fn header(&self, name: &str) -> Result<&str, String> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| format!("no header {name}"))
    }

    /// The same as [`Self::verify`] for a request of now: Amazon takes none that is older or newer than 5 minutes.
    pub fn verify_now(&self, service: &str, region: &str) -> Result<(), String> {
        let date = self.header("x-amz-date")?;
        let signed = DateTime::strptime("%Y%m%dT%H%M%SZ", date).and_then(|date| date.to_zoned(TimeZone::UTC));
        let signed = signed.map_err(|error| format!("{date}: {error}"))?.timestamp();
        if signed.as_second().abs_diff(Timestamp::now().as_second()) > 300 {
            return Err(format!("signed at another time: {date}"));
        }
        self.verify(service, region)
    }

    /// Says what is wrong with its signature for `service` in `region`, by the key above.
    pub fn verify(&self, service: &str, region: &str) -> Result<(), String> {
        let authorization = self.header("authorization")?;
        let fields = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another algorithm")?;
        let field = |name: &str| {
            let found = fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
            found.ok_or_else(|| format!("no {name}"))
        };
        let date = self.header("x-amz-date")?;
        let day = date.get(..8).ok_or_else(|| format!("no date: {date}"))?;
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let credential = field("Credential")?;
        if credential != format!("{KEY_ID}/{scope}") {
            return Err(format!("another credential: {credential}"));
        }
        let names: Vec<&str> = field("SignedHeaders")?.split(';').collect();
        if let Some(name) = ["host", "x-amz-date"].into_iter().find(|name| !names.contains(name)) {
            return Err(format!("{name} is not signed"));
        }
        let must = |name: &&str| *name == "host" || *name == "content-type" || name.starts_with("x-amz-");
        let sent = self.headers.iter().map(|(name, _)| name.as_str());
        if let Some(name) = sent.filter(must).find(|name| !names.contains(name)) {
            return Err(format!("{name} is not signed"));
        }
        let body = hex(digest(&SHA256, self.body).as_ref());
        if self.header("x-amz-content-sha256").is_ok_and(|claimed| claimed != body) {
            return Err("another body".to_owned());
        }
        let (path, query) = self.path.split_once('?').unwrap_or((self.path, ""));
        let path = if service == "s3" { path.to_owned() } else { encoded_again(path) };
        let mut pairs: Vec<String> = query.split('&').filter(|pair| !pair.is_empty()).map(with_value).collect();
        pairs.sort();
        let mut canonical = format!("{}\n{path}\n{}\n", self.method, pairs.join("&"));
        for name in &names {
            canonical.push_str(&format!("{name}:{}\n", self.header(name)?.trim()));
        }
        canonical.push_str(&format!("\n{}\n{body}", names.join(";")));
        let canonical = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{canonical}");
        let mut key = format!("AWS4{SECRET}").into_bytes();
        for part in scope.split('/') {
            key = signed(&key, part);
        }
        let (expected, signature) = (hex(&signed(&key, &to_sign)), field("Signature")?);
        if signature == expected { Ok(()) } else { Err(format!("signed as {signature}, not {expected}")) }
    }
}

fn signed(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A parameter without a value has an empty one.
fn with_value(pair: &str) -> String {
    if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") }
}

/// Services other than S3 encode the path once more.
fn encoded_again(path: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[test]
fn amazons_own_examples_are_signed_as_they_are() {
    let empty = hex(digest(&SHA256, b"").as_ref());
    type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);
    let rows: [Row; 4] = [
        (
            "GET",
            "/test.txt",
            &[("range", "bytes=0-9")],
            "",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test%24file.text",
            &[("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
            "Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        ("GET", "/?lifecycle", &[], "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("GET", "/?max-keys=2&prefix=J", &[], "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ];
    for (method, path, more, body, signature) in rows {
        let digest = if body.is_empty() { empty.clone() } else { hex(digest(&SHA256, body.as_bytes()).as_ref()) };
        let own = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", digest.as_str()),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let mut headers: Vec<(String, String)> =
            own.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={KEY_ID}/20130524/us-east-1/s3/aws4_request,SignedHeaders={},Signature={signature}",
            names.join(";")
        );
        headers.push(("authorization".to_owned(), authorization));
        let request = Signed { method, path, headers: &headers, body: body.as_bytes() };
        assert_eq!(request.verify("s3", "us-east-1"), Ok(()), "{method} {path}");
        let other = Signed { body: b"another body", ..request };
        assert!(other.verify("s3", "us-east-1").is_err(), "{method} {path}");
    }
}

//! Signatures by Standard Webhooks 1.0.0 (<https://www.standardwebhooks.com>): `v1,` and base64 of the HMAC-SHA256 over
//! `id.timestamp.body`.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The keys of a subscriber: the one of now, and the one before while it is still known.
pub(super) struct Keys(Vec<hmac::Key>);

impl Keys {
    /// These keys.
    pub(super) fn new(keys: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self(keys.into_iter().map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes)).collect())
    }

    /// The value of `webhook-signature`: one signature for each key, with a blank between.
    pub(super) fn signature(&self, id: &str, timestamp: i64, body: &str) -> String {
        let signed = format!("{id}.{timestamp}.{body}");
        let signature = |key: &hmac::Key| format!("v1,{}", STANDARD.encode(hmac::sign(key, signed.as_bytes())));
        self.0.iter().map(signature).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signature = Keys::new([key.clone()]).signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let both = Keys::new([key, vec![7; 24]]).signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert!(both.starts_with("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1,"), "{both}");
    }
}

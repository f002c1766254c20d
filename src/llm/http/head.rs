//! The head of a request, and that of its answer.

use bytes::{Buf, Bytes, BytesMut};
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Response, StatusCode, Uri};

use super::broken::Broken;
use super::framing::Framing;

/// 100 headers in an answer, hyper's limit too.
const MAX_HEADERS: usize = 100;

/// A request: always a POST, with its body whole.
#[derive(Debug, Default)]
pub(super) struct RequestHead {
    /// Path and query.
    pub(super) target: Uri,
    /// All but the body's length.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl RequestHead {
    /// What is sent before the body.
    pub(super) fn head(&self) -> Bytes {
        let mut head = format!("POST {} HTTP/1.1\r\n", self.target).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        head.into()
    }
}

/// What the head of an answer says.
#[derive(Debug)]
pub(super) struct Answer {
    /// Status, headers, and how the body is framed.
    pub(super) response: Response<Framing>,
    /// Whether nothing can follow it on its connection.
    pub(super) is_last: bool,
}

/// Takes the head of an answer from the beginning of `bytes`, with those before it that only say that one will come; `None`
/// as long as it is not whole.
///
/// # Errors
/// When it is not HTTP/1, or does not say where the body ends.
pub(super) fn take_answer(bytes: &mut BytesMut) -> Result<Option<Answer>, Broken> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(length) = head.parse(bytes)? else { return Ok(None) };
        let (status, headers) = read(&head)?;
        let is_old = head.version == Some(0);
        bytes.advance(length);
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            continue;
        }
        let framing = Framing::from_status(status, is_old, &headers)?;
        // Whoever says two lengths may mean the one that was not read.
        let is_ambiguous = headers.contains_key(TRANSFER_ENCODING) && headers.contains_key(CONTENT_LENGTH);
        let is_last = is_ambiguous
            || status == StatusCode::SWITCHING_PROTOCOLS
            || says(&headers, "close")
            || (is_old && !says(&headers, "keep-alive"));
        let mut response = Response::new(framing);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        return Ok(Some(Answer { response, is_last }));
    }
}

fn read(head: &httparse::Response<'_, '_>) -> Result<(StatusCode, HeaderMap), hyper::http::Error> {
    // A whole head has a status; 0 is none.
    let status = StatusCode::from_u16(head.code.unwrap_or_default())?;
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for field in head.headers.iter() {
        headers.append(HeaderName::from_bytes(field.name.as_bytes())?, HeaderValue::from_bytes(field.value)?);
    }
    Ok((status, headers))
}

/// Whether the connection's header has `word` in its list.
fn says(headers: &HeaderMap, word: &str) -> bool {
    let lists = headers.get_all(CONNECTION).iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_written_with_its_headers_in_their_order_and_its_length() {
        let headers = [("host", "a:1"), ("x-b", "2"), ("accept", "*/*")];
        let headers = headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let asked = RequestHead {
            target: Uri::from_static("/v1/chat?a=b%20c"),
            headers: headers.into_iter().collect(),
            body: Bytes::from_static(b"{}"),
        };
        let expected =
            "POST /v1/chat?a=b%20c HTTP/1.1\r\nhost: a:1\r\nx-b: 2\r\naccept: */*\r\ncontent-length: 2\r\n\r\n";
        assert_eq!(asked.head(), expected);
    }

    #[test]
    fn a_connection_can_be_used_again_unless_its_answer_speaks_against_it() {
        let table = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", false, "by default"),
            ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\n\r\n", true, "the server closes"),
            ("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nconnection: close\r\n\r\n", true, "whatever else it says"),
            ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n", true, "an old server closes"),
            ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n\r\n", false, "unless it says otherwise"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n", true, "two lengths"),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", true, "http ends here"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", false, "an answer behind a hint"),
        ];
        for (head, is_last, why) in table {
            let answer = take_answer(&mut BytesMut::from(head)).unwrap().unwrap();
            assert_eq!(answer.is_last, is_last, "{why}");
        }
    }

    proptest! {
        #[test]
        fn an_answer_with_any_change_is_read_or_refused(at in 0..120_usize, noise in prop::collection::vec(any::<u8>(), 0..9)) {
            let mut bytes = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 12, 12\r\ntransfer-encoding: x\r\n\r\n".to_vec();
            let end = bytes.len().min(at + noise.len());
            bytes.splice(at..end, noise);
            let _ = take_answer(&mut BytesMut::from(bytes.as_slice()));
        }
    }
}

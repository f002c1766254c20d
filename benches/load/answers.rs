//! What the model says: chunks as hosted models send them. The text has escapes, quotes and signs beyond ASCII, the sizes are
//! those of recordings, and no two chunks are the same.

use std::sync::LazyLock;
use std::time::Instant;

/// Tokens of an answer, as they come.
const TOKENS: [&str; 40] = [
    "word ",
    "Here",
    " is",
    " the",
    " low",
    " stock",
    " report",
    " for",
    " \"North",
    " warehouse",
    "\"",
    ":\n\n",
    "-",
    " **",
    "SKU",
    "-",
    "471",
    "1",
    "**",
    " →",
    " 12",
    " left",
    " 🙂",
    "\n",
    "-",
    " `",
    "reorder",
    "_point",
    "`",
    " <",
    " 20",
    ",",
    " für",
    " the",
    " Zürich",
    " store",
    "\\n",
    ".\n\n",
    "```json\n{\"ok\":",
    " true}\n```",
];

/// Chunks that differ.
const CHUNKS: usize = 256;

/// One chunk after the other, in HTTP's chunked coding, as a server sends them that writes each event as it comes.
static HTTP_CHUNKS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let token = |nth: usize| serde_json::json!({ "content": TOKENS[nth % TOKENS.len()] }).to_string();
    (0..CHUNKS).map(|nth| http_chunk(&event(&token(nth), "null", &padding(nth)))).collect()
});

/// The chunk that comes as number `nth`; the first has the word that clients wait for.
pub fn nth_chunk(nth: usize) -> &'static [u8] {
    &HTTP_CHUNKS[nth % CHUNKS]
}

/// Stands before and after the time in a chunk that tells when it was sent.
pub const AT: u8 = b'~';

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds on the clock of [`timed_chunk`].
pub fn now_us() -> u64 {
    BEGAN.elapsed().as_micros() as u64
}

/// A chunk like the others, whose text also tells when it was sent.
pub fn timed_chunk(nth: usize) -> Vec<u8> {
    let text = format!("{}~{}~", TOKENS[nth % TOKENS.len()], now_us());
    let delta = serde_json::json!({ "content": text }).to_string();
    http_chunk(&event(&delta, "null", &padding(nth)))
}

/// The end of an answer.
pub fn end(reason: &str) -> Vec<u8> {
    let events = [event("{}", &format!("\"{reason}\""), "00000000"), "data: [DONE]\n\n".to_owned()];
    let mut end = events.map(|event| http_chunk(&event)).concat();
    end.extend_from_slice(b"0\r\n\r\n");
    end
}

/// `times` calls of a tool in one turn; `salt` makes their ids new.
pub fn calls(tool: &str, arguments: &str, times: usize, salt: usize) -> Vec<u8> {
    let function = serde_json::json!({"name": tool, "arguments": arguments});
    let of_one = |nth| format!(r#"{{"index":{nth},"id":"call_{salt}_{nth}","type":"function","function":{function}}}"#);
    let calls: Vec<String> = (0..times).map(of_one).collect();
    let delta = format!(r#"{{"tool_calls":[{}]}}"#, calls.join(","));
    let mut answer = http_chunk(&event(&delta, "null", "00000000"));
    answer.extend_from_slice(&end("tool_calls"));
    answer
}

/// Another one in each chunk; some vendors hide the lengths of tokens by it.
fn padding(nth: usize) -> String {
    format!("{:08x}", nth * 0x9e37_79b1 % 0xffff_ffff)
}

fn event(delta: &str, finish: &str, padding: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-4f39f3af-3267-4ac1-a0cf-6aa7451877dc\",\"object\":\"chat.completion.chunk\",\
         \"created\":1771434740,\"model\":\"m\",\"system_fingerprint\":\"fp_e8236260a9\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}],\"obfuscation\":\"{padding}\"}}\n\n"
    )
}

fn http_chunk(event: &str) -> Vec<u8> {
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

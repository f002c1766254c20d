//! The forum: each tenant's own, with people who moderate it.

use serde_json::{Value, json};

use super::{Backend, NOW, NOWHERE, pluck, refused};

const OWNER: &str = "owner@acme";
const MEMBER: &str = "member@acme";
const GENERAL: &str = "cc000000-0000-4000-8000-000000000001";
const ARCHIVED: &str = "cc000000-0000-4000-8000-000000000003";
const WELCOME: &str = "dd000000-0000-4000-8000-000000000001";
const LOCKED: &str = "dd000000-0000-4000-8000-000000000002";
const WATCHES: &str = "ee000000-0000-4000-8000-000000000002";

impl Backend {
    async fn items(&self, token: &str, path: &str) -> Value {
        let (status, body) = self.get(token, path).await;
        assert_eq!(status, 200, "{path}: {body}");
        body["items"].clone()
    }
}

#[tokio::test]
async fn a_category_a_thread_and_a_post_are_made_and_read_back() {
    let backend = Backend::start().await;
    let body = json!({ "slug": " Ideas-2 ", "name": "Ideas" });
    let (status, category) = backend.post(OWNER, "/v1/forum/categories", &body).await;
    let expected = json!({
        "id": category["id"], "slug": "ideas-2", "name": "Ideas", "description": "", "status": "active",
        "inserted_at": NOW, "updated_at": NOW,
    });
    assert_eq!((status, &category), (200, &expected));
    let categories = backend.items(MEMBER, "/v1/forum/categories").await;
    assert_eq!(pluck(&categories, "slug"), ["general", "support", "old-news", "ideas-2"]);

    let body = json!({ "category_id": GENERAL, "title": "Release" });
    let (status, thread) = backend.post(MEMBER, "/v1/forum/threads", &body).await;
    let expected = json!({
        "id": thread["id"], "category_id": GENERAL, "title": "Release", "status": "open",
        "created_by_user_id": "member", "inserted_at": NOW, "updated_at": NOW,
    });
    assert_eq!((status, &thread), (200, &expected));
    let threads = backend.items(MEMBER, &format!("/v1/forum/threads?category_id={GENERAL}")).await;
    assert_eq!(pluck(&threads, "title"), ["Release", "Welcome"], "newest first, of the category alone");
    assert_eq!(backend.items(MEMBER, "/v1/forum/threads").await.as_array().unwrap().len(), 3, "of all");

    let body = json!({ "thread_id": thread["id"], "content": "It is out." });
    let (status, post) = backend.post(MEMBER, "/v1/forum/posts", &body).await;
    let expected = json!({
        "id": post["id"], "thread_id": thread["id"], "content": "It is out.", "status": "published",
        "author_type": "human", "author_id": "member", "inserted_at": NOW, "updated_at": NOW,
    });
    assert_eq!((status, &post), (200, &expected));
    let path = format!("/v1/forum/posts?thread_id={}", thread["id"].as_str().unwrap());
    assert_eq!(backend.items(OWNER, &path).await, json!([post]));
}

#[tokio::test]
async fn what_is_wrong_is_refused_with_its_reason() {
    let backend = Backend::start().await;
    let field = |field: &str, error: &str| {
        (400, refused("invalid_argument", &json!([{ "field": field, "error": error }]).to_string()))
    };
    let slug = || field("slug", "must be words of a-z 0-9 with - between, at most 64 characters");
    let not_now = |why: &str| (400, refused("failed_precondition", why));
    let not_found = |what: &str| (404, refused("not_found", &format!("{what} not found")));
    let category = |slug: &str| json!({ "slug": slug, "name": "A" });
    let thread = |category: &str, title: &str| json!({ "category_id": category, "title": title });
    let post = |thread: &str, content: &str| json!({ "thread_id": thread, "content": content });
    let cases = [
        ("categories", category("a--b"), slug()),
        ("categories", category("-a"), slug()),
        ("categories", category("a b"), slug()),
        ("categories", category(&"a".repeat(65)), slug()),
        ("categories", json!({ "slug": "a", "name": " " }), field("name", "must have 1 to 100 characters")),
        (
            "categories",
            category("GENERAL"),
            (409, refused("already_exists", "there is a category \"general\" already")),
        ),
        ("threads", thread(GENERAL, " "), field("title", "must have 1 to 200 characters")),
        ("threads", thread(GENERAL, &"ä".repeat(201)), field("title", "must have 1 to 200 characters")),
        ("threads", thread(NOWHERE, "A"), not_found("category")),
        ("threads", thread(ARCHIVED, "A"), not_now("the category is archived")),
        ("posts", post(WELCOME, "\n"), field("content", "must have 1 to 20000 characters")),
        ("posts", post(WELCOME, &"ä".repeat(20_001)), field("content", "must have 1 to 20000 characters")),
        ("posts", post(NOWHERE, "A"), not_found("thread")),
        ("posts", post(LOCKED, "A"), not_now("the thread is locked")),
        (&format!("threads/{NOWHERE}/lock"), json!({}), not_found("thread")),
        (&format!("posts/{NOWHERE}/hide"), json!({}), not_found("post")),
    ];
    for (path, body, expected) in cases {
        assert_eq!(backend.post(OWNER, &format!("/v1/forum/{path}"), &body).await, expected, "{path} {body}");
    }
    for (path, key) in [("categories", "status"), ("threads", "created_by_user_id"), ("posts", "author_id")] {
        let mut body = match path {
            "categories" => category("new"),
            "threads" => thread(GENERAL, "A"),
            _ => post(WELCOME, "A"),
        };
        body[key] = json!("somebody");
        let (status, answer) = backend.post(OWNER, &format!("/v1/forum/{path}"), &body).await;
        assert!(status == 400 && answer["message"].as_str().unwrap().contains(key), "nobody says {key}: {answer}");
    }
    let (status, _) = backend.get(OWNER, "/v1/forum/posts").await;
    assert_eq!(status, 400, "posts of which thread");
    let whole = backend.post(OWNER, "/v1/forum/posts", &post(WELCOME, &"ä".repeat(20_000))).await;
    assert_eq!(whole.0, 200, "the longest post");
}

#[tokio::test]
async fn members_write_and_owners_and_administrators_moderate() {
    let backend = Backend::start().await;
    let manager = (403, refused("permission_denied", "this needs the role owner or admin"));
    let (lock, hide) = (format!("/v1/forum/threads/{WELCOME}/lock"), format!("/v1/forum/posts/{WATCHES}/hide"));
    let category = json!({ "slug": "a", "name": "A" });
    for (path, body) in [("/v1/forum/categories", &category), (&lock, &json!({})), (&hide, &json!({}))] {
        assert_eq!(backend.post(MEMBER, path, body).await, manager, "{path}");
        assert_eq!(backend.post("admin@acme", path, body).await.0, 200, "{path}");
    }
    let stranger = backend.get("guest@acme", "/v1/forum/categories").await;
    assert_eq!(stranger, (403, refused("permission_denied", "this needs the role owner, admin or member")));
    let nowhere = backend.get("owner@", "/v1/forum/categories").await;
    assert_eq!(nowhere, (400, refused("failed_precondition", "missing tenant context")));
}

#[tokio::test]
async fn a_thread_is_locked_and_unlocked_and_a_post_hidden_shown_and_deleted_for_good() {
    let backend = Backend::start().await;
    let body = json!({ "thread_id": WELCOME, "content": "Me too." });
    for (verb, status, posted) in [("lock", "locked", 400), ("lock", "locked", 400), ("unlock", "open", 200)] {
        let (_, thread) = backend.post(OWNER, &format!("/v1/forum/threads/{WELCOME}/{verb}"), &json!({})).await;
        assert_eq!(thread["status"], status, "{verb}");
        assert_eq!(backend.post(MEMBER, "/v1/forum/posts", &body).await.0, posted, "{verb}");
    }
    let path = format!("/v1/forum/posts?thread_id={WELCOME}");
    for (verb, status, shown) in
        [("hide", "hidden", 2), ("unhide", "published", 3), ("delete", "deleted", 2), ("delete", "deleted", 2)]
    {
        let (_, post) = backend.post(OWNER, &format!("/v1/forum/posts/{WATCHES}/{verb}"), &json!({})).await;
        assert_eq!(post["status"], status, "{verb}");
        assert_eq!(backend.items(MEMBER, &path).await.as_array().unwrap().len(), shown, "members after {verb}");
        assert_eq!(backend.items(OWNER, &path).await.as_array().unwrap().len(), 3, "those who moderate after {verb}");
    }
    let answer = backend.post(OWNER, &format!("/v1/forum/posts/{WATCHES}/unhide"), &json!({})).await;
    assert_eq!(answer, (400, refused("failed_precondition", "the post is deleted")));
}

#[tokio::test]
async fn what_is_another_tenants_is_not_there() {
    let backend = Backend::start().await;
    let other = "owner@globex";
    for path in ["/v1/forum/categories", "/v1/forum/threads"] {
        assert_eq!(backend.items(other, path).await, json!([]), "{path}");
    }
    for id in [WELCOME, NOWHERE] {
        let answer = backend.post(other, &format!("/v1/forum/threads/{id}/lock"), &json!({})).await;
        assert_eq!(answer, (404, refused("not_found", "thread not found")), "{id}");
    }
    assert_eq!(backend.get(other, &format!("/v1/forum/threads?category_id={GENERAL}")).await.0, 404);
    assert_eq!(backend.get(other, &format!("/v1/forum/posts?thread_id={WELCOME}")).await.0, 404);
    let same = json!({ "slug": "general", "name": "General" });
    assert_eq!(backend.post(other, "/v1/forum/categories", &same).await.0, 200, "a slug is unique in its forum");
}

#[tokio::test]
async fn the_thousandth_thread_is_the_last() {
    let backend = Backend::start().await;
    let body = json!({ "category_id": GENERAL, "title": "One more" });
    for _ in 2..1000 {
        assert_eq!(backend.post(OWNER, "/v1/forum/threads", &body).await.0, 200);
    }
    let answer = backend.post(OWNER, "/v1/forum/threads", &body).await;
    assert_eq!(answer, (409, refused("aborted", "there are already 1000 threads")));
}

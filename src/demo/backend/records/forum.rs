//! A forum for each tenant: categories, their threads, the posts in those.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stamp::Stamp;

/// The file `forum.json`, of all tenants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forum {
    /// In the order in which they were made.
    pub categories: Vec<Category>,
    /// In the order in which they were begun.
    pub threads: Vec<Thread>,
    /// In the order in which they were written.
    pub posts: Vec<Post>,
}

/// What threads are about.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Category {
    /// Its id.
    pub id: Uuid,
    /// Whose forum it is in.
    #[serde(skip_serializing)]
    pub tenant: String,
    /// Its name in addresses, unique in its forum.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What belongs there.
    pub description: String,
    /// Whether threads may begin in it.
    pub status: CategoryStatus,
    /// When it was made.
    pub inserted_at: Stamp,
    /// When it was changed last.
    pub updated_at: Stamp,
}

/// What may be done with a category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CategoryStatus {
    /// Threads may begin.
    Active,
    /// None may.
    Archived,
}

/// A row of posts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Its id.
    pub id: Uuid,
    /// Whose forum it is in.
    #[serde(skip_serializing)]
    pub tenant: String,
    /// Where it stands.
    pub category_id: Uuid,
    /// What it is about.
    pub title: String,
    /// Whether posts may be added.
    pub status: ThreadStatus,
    /// Who began it.
    pub created_by_user_id: String,
    /// When.
    pub inserted_at: Stamp,
    /// When it was changed last.
    pub updated_at: Stamp,
}

/// What may be done with a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStatus {
    /// Posts may be added.
    Open,
    /// None may, until it is unlocked.
    Locked,
    /// None may any more.
    Archived,
}

/// What somebody wrote.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Post {
    /// Its id.
    pub id: Uuid,
    /// Whose forum it is in.
    #[serde(skip_serializing)]
    pub tenant: String,
    /// Where it stands.
    pub thread_id: Uuid,
    /// The text.
    pub content: String,
    /// Who may read it.
    pub status: PostStatus,
    /// What wrote it.
    pub author_type: AuthorType,
    /// Who wrote it.
    pub author_id: String,
    /// When.
    pub inserted_at: Stamp,
    /// When it was changed last.
    pub updated_at: Stamp,
}

/// Who may read a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostStatus {
    /// Every member.
    Published,
    /// Those who moderate.
    Hidden,
    /// The same, for good.
    Deleted,
}

/// What wrote a post. Requests write for people alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorType {
    /// A person.
    Human,
    /// A program that acts for one.
    Agent,
    /// The forum itself.
    System,
}

impl Forum {
    /// The first thread or post that stands nowhere in its own forum, for the seed's check.
    pub fn stray(&self) -> Option<Uuid> {
        let is_placed = |thread: &Thread| self.category(&thread.tenant, thread.category_id).is_some();
        let has_thread =
            |post: &Post| self.threads.iter().any(|thread| thread.id == post.thread_id && thread.tenant == post.tenant);
        let thread = self.threads.iter().find(|thread| !is_placed(thread)).map(|thread| thread.id);
        thread.or_else(|| self.posts.iter().find(|post| !has_thread(post)).map(|post| post.id))
    }

    /// The category of this id in the tenant's forum.
    pub fn category(&self, tenant: &str, id: Uuid) -> Option<&Category> {
        self.categories.iter().find(|category| category.id == id && category.tenant == tenant)
    }

    /// The thread of this id in the tenant's forum.
    pub fn thread(&mut self, tenant: &str, id: Uuid) -> Option<&mut Thread> {
        self.threads.iter_mut().find(|thread| thread.id == id && thread.tenant == tenant)
    }

    /// The post of this id in the tenant's forum.
    pub fn post(&mut self, tenant: &str, id: Uuid) -> Option<&mut Post> {
        self.posts.iter_mut().find(|post| post.id == id && post.tenant == tenant)
    }
}

/// Whether `text` can be a slug: lower-case letters and digits, in words with `-` between.
pub fn is_slug(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= MAX_SLUG && text.split('-').all(is_word)
}

/// Bytes of a slug.
pub const MAX_SLUG: usize = 64;

//! What is known of files, in SQL. The bytes of a row that goes are noted by a trigger (`file_removals`), whoever deletes it.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use serde_json::Value;

use super::SqlStore;
use crate::agent::ports::files::{FilePart, FileRecord, FileRows, KeptFile, NewFileRow, Which};
use crate::agent::ports::store_error::StoreError;
use crate::chat::caller::Owner;
use crate::chat::file::{FileKind, FileRef, Purpose};
use crate::chat::ids::FileId;
use crate::store::database::{Connection, take_turns};
use crate::store::fault::{Fault, attempt};
use crate::store::record::column;
use crate::store::record_error::RecordError;
use crate::store::scope::{Reach, Scope, original, storable};
use crate::store::statement::{Batch, query};

/// How long bytes without a row stay, and a file that no message has named: a day.
const UNUSED_MS: i64 = 24 * 3600 * 1000;

/// Files that conversations have needed of which one sweep looks whether any still does. Whoever deletes a conversation deletes
/// its files with it, so this finds only what two deletions at once have each left to the other.
const LOOKED_AT: usize = 1000;

#[async_trait]
impl FileRows for SqlStore {
    async fn announce_file(&self, id: FileId) -> Result<(), StoreError> {
        attempt("announce a file", self.try_announce(id)).await
    }

    async fn keep_file(&self, owner: &Owner, row: NewFileRow<'_>) -> Result<KeptFile, StoreError> {
        attempt("keep a file", self.try_keep_file(&owner.into(), row)).await
    }

    async fn files(&self, owner: &Owner, which: Which<'_>) -> Result<Vec<FileRecord>, StoreError> {
        attempt("read files", self.try_files(&owner.into(), which)).await
    }

    async fn delete_file(&self, owner: &Owner, id: FileId) -> Result<bool, StoreError> {
        attempt("delete a file", self.try_delete_file(&owner.into(), id)).await
    }

    async fn sweep_files(&self, removed: &[FileId], most: u32) -> Result<Vec<FileId>, StoreError> {
        attempt("sweep files", self.try_sweep_files(removed, most)).await
    }
}

/// A file as its row has it: its id, media type, name, size in bytes and of its longer side, when it came, its purpose, and when it
/// goes.
type FileRow = (String, String, String, i64, i64, i64, String, Option<i64>);

/// The columns of [`FileRow`]. A file that no message has named goes when it is unused for [`UNUSED_MS`].
macro_rules! columns {
    () => {
        "f.id, f.media_type, f.name, f.bytes, f.side, f.created_at, f.purpose, COALESCE(f.expires_at, CASE WHEN f.used = 0
             AND NOT EXISTS (SELECT 1 FROM file_uses u WHERE u.tenant = f.tenant AND u.user_id = f.user_id AND u.file_id = f.id)
             THEN f.created_at + 86400000 END)"
    };
}

fn record(row: FileRow) -> Result<FileRecord, RecordError> {
    let (id, media_type, name, bytes, side, created_ms, purpose, expires_ms) = row;
    let kind = FileKind::of_media_type(&media_type).ok_or(RecordError::File)?;
    let purpose = Purpose::named(&purpose).ok_or(RecordError::File)?;
    let (id, name) = (FileId::parse(&id)?, original(&name).into_owned());
    let (bytes, side) = (u64::try_from(bytes).unwrap_or_default(), u32::try_from(side).unwrap_or_default());
    Ok(FileRecord { file: FileRef { id, kind, name, bytes, side }, created_ms, purpose, expires_ms })
}

/// Ids as a JSON list.
fn list(ids: &[FileId]) -> String {
    Value::from_iter(ids.iter().map(ToString::to_string)).to_string()
}

impl SqlStore {
    async fn try_announce(&self, id: FileId) -> Result<(), Fault> {
        let mut transaction = self.database.write(Reach::All).await?;
        let announce = query(
            "INSERT INTO file_removals (file_id, at) VALUES ($1, @now + $2)
             ON CONFLICT (file_id) DO UPDATE SET at = excluded.at",
        );
        announce.bind((id.to_string(), UNUSED_MS)).execute(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn try_keep_file(&self, scope: &Scope, row: NewFileRow<'_>) -> Result<KeptFile, Fault> {
        let NewFileRow { file, sha256, terms, most: (of_user, of_tenant) } = row;
        let mut transaction = self.database.write(Reach::Tenant(scope)).await?;
        // Two that count first and insert then would both find room.
        take_turns(&mut transaction, "files", &scope.of_all()).await?;
        // The same bytes wait for their message again, on the terms that were said last; one that conversations need without an
        // end of its own gets none.
        let again = query(
            "UPDATE files SET created_at = @now, used = 0, purpose = COALESCE($4, purpose), name = $6, media_type = $7,
                 expires_at = CASE WHEN expires_at IS NULL AND EXISTS (SELECT 1 FROM file_uses u WHERE u.tenant = files.tenant
                     AND u.user_id = files.user_id AND u.file_id = files.id) THEN NULL ELSE @now + $5 END
             WHERE tenant = $1 AND user_id = $2 AND sha256 = $3",
        );
        if again
            .bind((scope, &sha256[..], terms.purpose.map(Purpose::name), terms.kept_ms))
            .bind((storable(&file.name).into_owned(), file.kind.media_type()))
            .execute(&mut transaction)
            .await?
            != 0
            && let Some(record) = same(&mut transaction, scope, &sha256).await?
        {
            transaction.commit().await?;
            return Ok(KeptFile::Same(record));
        }
        let (user, tenant): (i64, i64) = query(
            "SELECT CAST(COALESCE(SUM(CASE WHEN user_id = $2 THEN bytes ELSE 0 END), 0) AS BIGINT),
                 CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM files
                 WHERE tenant = $1 AND (expires_at IS NULL OR expires_at > @now)",
        )
        .bind(scope)
        .fetch_one(&mut transaction)
        .await?;
        let is_over = |most: u64, kept: i64| most != 0 && kept.saturating_add(column(file.bytes)) > column(most);
        if is_over(of_user, user) {
            return Ok(KeptFile::OverQuota("user"));
        }
        if scope.names_tenant() && is_over(of_tenant, tenant) {
            return Ok(KeptFile::OverQuota("tenant"));
        }
        let (now, purpose) = (self.clock.now_ms(), terms.purpose.unwrap_or_default());
        let expires = terms.kept_ms.map(|kept| now.saturating_add(kept));
        let taken = query(
            "INSERT INTO files (tenant, user_id, id, sha256, media_type, name, bytes, side, created_at, purpose, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING",
        )
        .bind((scope, file.id.to_string(), &sha256[..], file.kind.media_type()))
        .bind((storable(&file.name).into_owned(), column(file.bytes), i64::from(file.side), now))
        .bind((purpose.name(), expires))
        .execute(&mut transaction)
        .await?;
        if taken == 0 {
            let record = same(&mut transaction, scope, &sha256).await?;
            transaction.commit().await?;
            return Ok(record.map_or(KeptFile::OverQuota("user"), KeptFile::Same));
        }
        query("DELETE FROM file_removals WHERE file_id = $1")
            .bind(file.id.to_string())
            .execute(&mut transaction)
            .await?;
        transaction.commit().await?;
        let expires_ms = Some(expires.unwrap_or(now.saturating_add(UNUSED_MS)));
        Ok(KeptFile::New(FileRecord { file: file.clone(), created_ms: now, purpose, expires_ms }))
    }

    async fn try_files(&self, scope: &Scope, which: Which<'_>) -> Result<Vec<FileRecord>, Fault> {
        let mut reading = self.database.reading(Reach::User(scope)).await?;
        let columns = query(concat!(
            "SELECT ",
            columns!(),
            " FROM files f WHERE f.tenant = $1 AND f.user_id = $2 AND (f.expires_at IS NULL OR f.expires_at > @now)"
        ));
        let rows: Vec<FileRow> = match which {
            Which::These(ids) => {
                columns.part(true, " AND f.id @one_of($3)").bind((scope, list(ids))).fetch_all(&mut reading).await?
            }
            Which::Part(FilePart { after, oldest_first, purpose, most }) => {
                columns
                    .part(after.is_some() && !oldest_first, " AND (f.created_at, f.id) < ($3, $4)")
                    .part(after.is_some() && oldest_first, " AND (f.created_at, f.id) > ($3, $4)")
                    .part(purpose.is_some(), " AND f.purpose = $5")
                    .part(!oldest_first, " ORDER BY f.created_at DESC, f.id DESC LIMIT $6")
                    .part(oldest_first, " ORDER BY f.created_at, f.id LIMIT $6")
                    .bind(scope)
                    .bind((after.map_or(0, |(at, _)| at), after.map(|(_, id)| id.to_string())))
                    .bind((purpose.map(Purpose::name), i64::from(most)))
                    .fetch_all(&mut reading)
                    .await?
            }
        };
        Ok(rows.into_iter().map(record).collect::<Result<_, _>>()?)
    }

    async fn try_delete_file(&self, scope: &Scope, id: FileId) -> Result<bool, Fault> {
        let mut transaction = self.database.write(Reach::User(scope)).await?;
        let deleted = query("DELETE FROM files WHERE tenant = $1 AND user_id = $2 AND id = $3 AND (expires_at IS NULL OR expires_at > @now)")
            .bind((scope, id.to_string()))
            .execute(&mut transaction)
            .await?;
        transaction.commit().await?;
        Ok(deleted != 0)
    }

    /// The next files that conversations have needed, in the order of their age, of which no conversation needs any more; from
    /// the oldest again behind the last.
    async fn left_files(&self) -> Result<Vec<String>, Fault> {
        let from = self.files_looked_at.load(Ordering::Relaxed);
        let rows: Vec<(String, i64, bool)> = query(
            "SELECT f.id, f.created_at, EXISTS (
                 SELECT 1 FROM file_uses u WHERE u.tenant = f.tenant AND u.user_id = f.user_id AND u.file_id = f.id)
             FROM files f WHERE f.used = 1 AND f.created_at >= $1 ORDER BY f.created_at LIMIT $2",
        )
        .bind((from, LOOKED_AT as i64))
        .fetch_all(&mut self.database.reading(Reach::All).await?)
        .await?;
        let next = rows.last().filter(|_| rows.len() == LOOKED_AT);
        // Where more than that have come at one time, those behind them wait for the next round.
        let next = next.map_or(0, |(_, at, _)| (*at).max(from.saturating_add(1)));
        self.files_looked_at.store(next, Ordering::Relaxed);
        Ok(rows.into_iter().filter(|(_, _, is_needed)| !is_needed).map(|(id, ..)| id).collect())
    }

    async fn try_sweep_files(&self, removed: &[FileId], most: u32) -> Result<Vec<FileId>, Fault> {
        let left = self.left_files().await?;
        let mut transaction = self.database.write(Reach::All).await?;
        if !removed.is_empty() {
            // Unless they were announced again meanwhile.
            query("DELETE FROM file_removals WHERE file_id @one_of($1) AND at <= @now")
                .bind(list(removed))
                .execute(&mut transaction)
                .await?;
        }
        let unused: Vec<String> = query(
            "SELECT f.id FROM files f WHERE f.expires_at IS NULL
                 AND (f.used = 0 AND f.created_at < @now - $1 OR f.id @one_of($3)) AND NOT EXISTS (
                     SELECT 1 FROM file_uses u WHERE u.tenant = f.tenant AND u.user_id = f.user_id AND u.file_id = f.id)
             LIMIT $2 @skip_locked",
        )
        .bind((UNUSED_MS, i64::from(most), Value::from(left).to_string()))
        .fetch_values(&mut transaction)
        .await?;
        delete_unused(&mut transaction, unused).await?;
        let expired = query(
            // The time is looked at again when the row is held: it may have been put off meanwhile.
            "DELETE FROM files WHERE expires_at <= @now AND (tenant, user_id, id) IN (SELECT tenant, user_id, id FROM files
                 WHERE expires_at <= @now LIMIT $1)",
        );
        expired.bind(i64::from(most)).execute(&mut transaction).await?;
        // Of a row that is gone it is 0. What was announced and has a row stays until that goes.
        let ids: Vec<String> = query(
            "SELECT file_id FROM file_removals WHERE at <= @now
                 AND (at = 0 OR NOT EXISTS (SELECT 1 FROM files f WHERE f.id = file_id))
             ORDER BY at LIMIT $1",
        )
        .bind(i64::from(most))
        .fetch_values(&mut transaction)
        .await?;
        transaction.commit().await?;
        Ok(ids.iter().map(|id| FileId::parse(id)).collect::<Result<_, _>>().map_err(RecordError::from)?)
    }
}

/// Deletes these files, whose rows are held, unless a conversation needs one by now: in a statement of its own, which sees what
/// was committed before their rows were held.
pub(super) async fn delete_unused(connection: &mut dyn Connection, held: Vec<String>) -> Result<(), Fault> {
    if held.is_empty() {
        return Ok(());
    }
    query(
        "DELETE FROM files WHERE id @one_of($1) AND NOT EXISTS (SELECT 1 FROM file_uses u
             WHERE u.tenant = files.tenant AND u.user_id = files.user_id AND u.file_id = files.id)",
    )
    .bind(Value::from(held).to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// The owner's file with these bytes.
async fn same(connection: &mut dyn Connection, scope: &Scope, sha256: &[u8; 32]) -> Result<Option<FileRecord>, Fault> {
    let row: Option<FileRow> =
        query(concat!("SELECT ", columns!(), " FROM files f WHERE f.tenant = $1 AND f.user_id = $2 AND f.sha256 = $3"))
            .bind((scope, &sha256[..]))
            .fetch_optional(connection)
            .await?;
    Ok(row.map(record).transpose()?)
}

/// Notes that a conversation needs these files of its owner's. What is none of theirs, or is gone, is left out.
pub(super) fn note_uses(batch: &mut Batch, scope: &Scope, conversation: &str, files: &[FileId]) {
    if files.is_empty() {
        return;
    }
    let ids = list(files);
    // First, so that their rows are held: one that is being deleted is gone behind this.
    batch
        .say("UPDATE files SET used = 1 WHERE tenant = $1 AND user_id = $2 AND id @one_of($3)")
        .bind((scope, ids.clone()));
    batch
        .say(
            "INSERT INTO file_uses (tenant, user_id, conversation, file_id)
             SELECT f.tenant, f.user_id, $3, f.id FROM files f
             WHERE f.tenant = $1 AND f.user_id = $2 AND f.id @one_of($4)
             ON CONFLICT (tenant, user_id, file_id, conversation) DO NOTHING",
        )
        .bind((scope, conversation, ids));
}

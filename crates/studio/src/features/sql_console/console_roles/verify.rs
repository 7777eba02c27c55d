//! Whether the set-up holds.

use std::fmt;

use tokio_postgres::Client;

use super::{ConsoleRole, DANGEROUS};
use crate::features::sql_console::catalogue::Catalogue;

const VERIFY: &str = include_str!("verify.sql");

/// Something that a console role may do and should not, or may not do and should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The login role.
    pub role: String,
    /// Whether the console stays off for it. Otherwise it is worth a warning.
    pub is_blocking: bool,
    /// A sentence for the operator.
    pub sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Everything that is not as [`super::set_up`] leaves it. Any role may ask; nothing is changed.
///
/// # Errors
/// The database's.
pub async fn verify(
    client: &Client,
    roles: &[ConsoleRole],
) -> Result<Vec<Finding>, tokio_postgres::Error> {
    let mut findings = Vec::new();
    for role in roles {
        let views: Vec<&str> =
            Catalogue::ALL.readable_by(role.role).map(|view| view.name).collect();
        for row in client.query(VERIFY, &[&role.login, &DANGEROUS, &views]).await? {
            findings.push(finding(&role.login, row.get("kind"), row.get("what")));
        }
    }
    Ok(findings)
}

fn finding(role: &str, kind: &str, what: &str) -> Finding {
    let sentence = match kind {
        "no_role" => format!("The role {role} does not exist: run `studio migrate`."),
        "attribute" => format!("The role {role} has the attribute {what}."),
        "member" => format!("The role {role} is a member of {what}."),
        "setting" => format!("The role {role} lacks the setting {what}."),
        "function" => format!("The role {role} may call {what}."),
        "temporary" => format!("The role {role} may create temporary tables in {what}."),
        "schema" => format!("The role {role} may use the schema {what}."),
        "language" => format!("The role {role} may use the language {what}."),
        "relation" => format!("The role {role} has a privilege on {what}."),
        "view" => format!("The role {role} may not read the view {what}: run `studio migrate`."),
        _ => format!("The role {role} may connect to the database {what}."),
    };
    Finding { role: role.to_owned(), is_blocking: kind != "database", sentence }
}

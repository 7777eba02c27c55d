//! `studio account create`: the first administrator, and any account after.

use std::io::Read as _;

use anyhow::Context as _;

use crate::platform::access::Role;
use crate::platform::account::{self, AccountName};
use crate::platform::schema;
use crate::settings::Settings;

/// What to create.
#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// The name; upper and lower case are the same.
    #[arg(long)]
    name: String,
    /// What the account may do.
    #[arg(long, value_enum)]
    role: Role,
    /// Read the password from standard input instead of making one up.
    #[arg(long)]
    password_stdin: bool,
}

impl Create {
    pub(super) async fn run(&self, settings: &Settings) -> anyhow::Result<()> {
        let name = AccountName::parse(&self.name).context("a name has 1 to 128 characters")?;
        let (password, is_generated) = if self.password_stdin {
            let mut text = String::new();
            std::io::stdin().take(4_096).read_to_string(&mut text)?;
            (text.trim_end_matches(['\r', '\n']).to_owned(), false)
        } else {
            (account::generated_password(), true)
        };
        let client = schema::connect(&schema::owner(settings)?).await?;
        schema::check(&client).await?;
        account::create(&client, &name, self.role, &password)
            .await?
            .with_context(|| format!("there is an account `{}` already", name.as_str()))?;
        // Nobody is signed in at the command line: the trail names the program itself.
        client
            .execute(
                include_str!("account/record.sql"),
                &[&"account.create", &name.as_str(), &serde_json::json!({ "role": self.role })],
            )
            .await?;
        super::print(&format!("Created the {} `{}`.", self.role.name(), name.as_str()))?;
        if is_generated {
            super::print(&format!("Password: {password}"))?;
        }
        Ok(())
    }
}

//! The page at the end of the trail by cursor, beside the first one by cursor.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench::{Installation, Verdicts, median};
use studio::features::audit::cursor_behind;
use studio::platform::paging::{Key, Microseconds};
use tokio_postgres::Client;

use crate::session::Session;

/// How much longer the page at the end may take.
const PROMISE: f64 = 1.2;

/// One filter and the size of its pages.
struct List {
    name: &'static str,
    filter: String,
    /// The same filter in SQL.
    condition: String,
    size: usize,
}

/// Two pages of the same size.
struct Pair {
    first: String,
    deep: String,
    rows: usize,
}

pub(crate) struct Pages<'a> {
    pub(crate) installation: &'a Installation,
    pub(crate) session: &'a Session,
}

impl Pages<'_> {
    pub(crate) async fn measure(&self, requests: usize, verdicts: &mut Verdicts) -> Result<()> {
        let client = self.installation.client().await?;
        let mut plain = None;
        for list in lists(&client).await? {
            let pair = pair(&client, &list).await?;
            self.is_at_the_end(&list, &pair).await?;
            let (first, deep) = self.compare(&pair, &pair.first, requests).await?;
            println!(
                "{}, pages of {}: first {:.2} ms, at the end {:.2} ms ({} rows)",
                list.name,
                list.size,
                first * 1e3,
                deep * 1e3,
                pair.rows,
            );
            let what = format!("history at the end, {}, times its first page", list.name);
            verdicts.at_most(&what, deep / first, PROMISE);
            // What finds little must not read much to find it: it is also held against the first page of everything.
            match &plain {
                None => plain = Some(pair.first),
                Some(plain) if pair.rows < 50 => {
                    let (first, deep) = self.compare(&pair, plain, requests).await?;
                    let what = format!("the same, {}, times the first page unfiltered", list.name);
                    verdicts.at_most(&what, deep / first, PROMISE);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The deep page is whole, and one row is behind it.
    async fn is_at_the_end(&self, list: &List, pair: &Pair) -> Result<()> {
        let (page, _) = self.session.page(&pair.deep).await?;
        ensure!(page.rows() == pair.rows, "{} rows at {}", page.rows(), pair.deep);
        if let Some(next) = page.next {
            let behind = format!("/api/v1/audit?size={}{}&after={next}", list.size, list.filter);
            let (page, _) = self.session.page(&behind).await?;
            ensure!(page.rows() == 1 && page.next.is_none(), "{} is not the end", pair.deep);
        }
        Ok(())
    }

    /// Seconds of a first page and of the deep one: medians of interleaved requests, and of three rounds of them.
    async fn compare(&self, pair: &Pair, first: &str, requests: usize) -> Result<(f64, f64)> {
        let (mut firsts, mut deeps) = (vec![], vec![]);
        for _ in 0..3 {
            let (mut first_times, mut deep_times) = (vec![], vec![]);
            for _ in 0..requests {
                first_times.push(self.time(first).await?);
                deep_times.push(self.time(&pair.deep).await?);
            }
            firsts.push(median(first_times));
            deeps.push(median(deep_times));
        }
        Ok((median(firsts), median(deeps)))
    }

    async fn time(&self, path: &str) -> Result<f64> {
        let (_, took): (_, Duration) = self.session.page(path).await?;
        Ok(took.as_secs_f64())
    }
}

/// No filter, each filter, an actor with ten events and one with none.
async fn lists(client: &Client) -> Result<Vec<List>> {
    let times = client.query_one(include_str!("times.sql"), &[]).await?;
    let (from, to): (String, String) = (times.try_get(0)?, times.try_get(1)?);
    let equal = |name: &'static str, column: &str, value: &str, size| List {
        name,
        filter: format!("&{column}={value}"),
        condition: format!("{column} = '{value}'"),
        size,
    };
    Ok(vec![
        List { name: "no filter", filter: String::new(), condition: "true".to_owned(), size: 50 },
        List {
            name: "times",
            filter: format!("&from={from}&to={to}"),
            condition: format!("at >= '{from}' and at < '{to}'"),
            size: 50,
        },
        equal("actor", "actor", "demo-00", 50),
        equal("action", "action", "sql.query", 50),
        equal("outcome", "outcome", "complete", 50),
        equal("outcome that is rare", "outcome", "interrupted", 50),
        equal("actor with 10 events", "actor", "demo-rare", 4),
        equal("actor with none", "actor", "nobody", 50),
    ])
}

/// The list's first page and the one that ends at the last row but one: both look for one row more, and find it.
async fn pair(client: &Client, list: &List) -> Result<Pair> {
    let behind = include_str!("end.sql").replace("{filter}", &list.condition);
    let offset = i64::try_from(list.size)? + 1;
    let found = client.query_opt(&behind, &[&offset]).await?;
    let (row, rows) = if let Some(row) = found {
        (row, list.size)
    } else {
        // Nothing to stand behind: at the end of all rows then.
        let everything = include_str!("end.sql").replace("{filter}", "true");
        (client.query_one(&everything, &[&offset]).await?, 0)
    };
    let key = Key { at: Microseconds(row.try_get("microseconds")?), id: row.try_get("id")? };
    let first = format!("/api/v1/audit?size={}{}", list.size, list.filter);
    let cursor = cursor_behind(&first.parse()?, key).context("a filter that Studio refuses")?;
    let deep = format!("{first}&after={cursor}");
    Ok(Pair { first, deep, rows })
}

//! A query that was written again gives what its author's text would have given.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use studio::features::sql_console::catalogue::Catalogue;
use studio::features::sql_console::check::check;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{bed, session};
use crate::bed::Bed;

/// Expressions without brackets, of fitting types, so that most of them have a value.
struct Expressions(StdRng);

impl Expressions {
    fn one(&mut self, of: &[&str]) -> String {
        (*of.choose(&mut self.0).unwrap()).to_owned()
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 || self.0.random_bool(0.15) {
            return self.one(&[
                "1",
                "2",
                "-1",
                "2.5",
                "id",
                "row_count",
                "null",
                "4::int",
                "'3'::int8",
            ]);
        }
        let depth = depth - 1;
        match self.0.random_range(0..10) {
            0..=5 => {
                let sign = self.one(&["+", "-", "*", "+", "-", "/", "%", "^", "&", "|", "#", "<<"]);
                format!("{} {sign} {}", self.number(depth), self.number(depth))
            }
            6 => format!("{}{}", self.one(&["- ", "+ ", "-"]), self.number(depth)),
            7 => format!("({})", self.number(depth)),
            8 => format!("{}::{}", self.number(depth), self.one(&["int", "numeric", "float8"])),
            _ => format!(
                "case when {} then {} else {} end",
                self.truth(depth),
                self.number(depth),
                self.number(depth)
            ),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 || self.0.random_bool(0.15) {
            return self.one(&[
                "'a'",
                "'it''s'",
                "actor",
                r"E'\\\n\x41'",
                r"'a\b%'",
                "$$d'$$",
                "null::text",
            ]);
        }
        let depth = depth - 1;
        match self.0.random_range(0..10) {
            0..=4 => format!("{} || {}", self.text(depth), self.text(depth)),
            5 => format!("{}::text", self.number(depth)),
            6 => format!("({})", self.text(depth)),
            7 => format!("{} collate \"C\"", self.text(depth)),
            8 => format!("detail -> 'number' ->> {}", self.one(&["0", "'a'"])),
            _ => format!("lower({})", self.text(depth)),
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        if depth == 0 || self.0.random_bool(0.1) {
            return self.one(&["true", "false", "null"]);
        }
        let depth = depth - 1;
        match self.0.random_range(0..16) {
            0..=4 => {
                let word = self.one(&["and", "or", "=", "<>", "<"]);
                format!("{} {word} {}", self.truth(depth), self.truth(depth))
            }
            5..=6 => format!("not {}", self.truth(depth)),
            7..=9 => {
                let sign = self.one(&["=", "<", ">=", "is distinct from", "is not distinct from"]);
                format!("{} {sign} {}", self.number(depth), self.number(depth))
            }
            10..=11 => {
                let sign = self.one(&["=", "<", "like", "not like", "ilike", "~", "!~*", "^@"]);
                format!("{} {sign} {}", self.text(depth), self.text(depth))
            }
            12 => {
                let word =
                    self.one(&["is null", "is not null", "in (1, 2)", "not between 0 and 1"]);
                format!("{} {word}", self.number(depth))
            }
            13 => format!(
                "{} {}",
                self.truth(depth),
                self.one(&["is true", "is not false", "is unknown"])
            ),
            14 => format!("({})", self.truth(depth)),
            _ => format!("{} = any (array[{}])", self.number(depth), self.number(depth)),
        }
    }

    fn any(&mut self) -> String {
        match self.0.random_range(0..4) {
            0 => self.number(3),
            1 => self.text(3),
            _ => self.truth(3),
        }
    }
}

/// The column's name and its values, or the SQLSTATE of the error.
async fn outcome(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let mut rows = Vec::new();
            for message in messages {
                if let SimpleQueryMessage::Row(row) = message {
                    let cells = (0..row.len()).map(|index| {
                        format!("{}={:?}", row.columns()[index].name(), row.get(index))
                    });
                    rows.push(cells.collect::<Vec<_>>().join(" "));
                }
            }
            rows.join("\n")
        }
        Err(error) => format!("error {:?}", error.code()),
    }
}

async fn installation_with_events() -> (Bed, Client) {
    let bed = bed().await;
    bed.run(&["demo", "seed", "--events", "200", "--no-accounts"], &[]).await;
    let client = session(&bed.studio, "studio_console_administrator").await;
    (bed, client)
}

#[tokio::test]
async fn generated_expressions_keep_their_values() {
    let (_bed, client) = installation_with_events().await;
    let first: i64 = client.query_one("select min(id) from audit_event", &[]).await.unwrap().get(0);
    let mut expressions = Expressions(StdRng::seed_from_u64(20_261_202));
    let (mut values, mut tried) = (0, 0);
    while values < 2_000 {
        tried += 1;
        assert!(tried < 20_000, "most expressions must have a value");
        let sql =
            format!("select {} from audit_event e where id = {}", expressions.any(), first + 6);
        let Ok(checked) = check(&sql, &Catalogue::ALL) else { continue };
        let (plain, written) =
            (outcome(&client, &sql).await, outcome(&client, checked.sql()).await);
        if plain.starts_with("error") && written.starts_with("error") {
            continue;
        }
        assert_eq!(plain, written, "{sql}\n{}", checked.sql());
        values += 1;
    }
}

#[tokio::test]
async fn whole_queries_keep_their_rows_and_the_names_of_their_columns() {
    let (_bed, client) = installation_with_events().await;
    for sql in [
        "select 1 union select 2 intersect select 3 order by 1",
        "select 1 union all (select 2 union all select 1) except select 2 order by 1 desc",
        "select actor, count(*), max(at), sum(row_count) from audit_event group by actor order by 2 desc, 1",
        "select distinct on (actor) actor, id from audit_event order by actor, id desc",
        "select a.id, b.id from audit_event a join audit_event b on a.id = b.id + 1 order by 1 limit 5 offset 3",
        "select id from (select a.id from audit_event a) s natural join (select b.id from audit_event b) t order by 1 limit 3",
        "select a.id, c.name from audit_event a left join account c on c.id = a.actor_id order by a.id limit 7",
        "select id, row_number() over (partition by action order by id), sum(row_count) over w from audit_event \
         window w as (order by id rows between 2 preceding and current row) order by id limit 20",
        "select action, grouping(action), count(*) from audit_event group by rollup (action) order by 1, 2",
        "with recursive t(n) as (select 1 union all select t.n + 1 from t where t.n < 5) select * from t",
        "with x as (select action, id from audit_event), y as materialized (select max(x.id) m from x) \
         select x.action from x, y where x.id = y.m",
        "select extract(year from at), date_trunc('day', at), at at time zone 'utc' from audit_event order by id limit 3",
        "select substring('abcdef' from 2 for 3), substring('abcdef', 2), substr('abc', 2), trim(both 'x' from 'xax'), \
         trim('  a '), position('b' in 'abc'), overlay('abcd' placing 'xx' from 2 for 1), ceil(1.2), floor(-1.2)",
        "select coalesce(null, 1), nullif(1, 2), greatest(1, 2), least(1, 2), 1::text, 'x'::varchar(3), '5'::numeric(4, 2)",
        "select case when true then 1 end, exists (select 1), array[1, 2], array(select 1), (array[1, 2])[1], (1, 2)",
        "select string_agg(distinct action, ',' order by action), count(*) filter (where outcome = 'complete') from audit_event",
        "select percentile_cont(0.5) within group (order by row_count), mode() within group (order by action) from audit_event",
        "select l.n from (select 1 as a) s, lateral (select s.a + 1 as n) l",
        "values (1, 'a'), (2, 'b')",
        "select interval '1 day', date '2026-01-31' + interval '1 month', timestamp '2026-01-01 00:00'",
        "select U, u & 1 from (select 3 as u) s",
        "select * from (values (1, 'x')) as v (a, \"B c\")",
        "select v.* from (values (1, 2)) v order by column1",
        "select 1 as \"select\", 2 \"Weird \"\" name\"",
        "select count(*) from audit_event where action in ('sql.query', 'audit.export') and (row_count, id) > (10, 1)",
        "select id from audit_event order by id fetch first 3 rows only",
        "select detail ->> 'number', detail #>> '{demo}', detail @> '{\"demo\": true}' from audit_event order by id limit 3",
        "select from audit_event limit 2",
    ] {
        let checked =
            check(sql, &Catalogue::ALL).unwrap_or_else(|refusal| panic!("{sql}: {refusal}"));
        let plain = outcome(&client, sql).await;
        assert!(!plain.starts_with("error"), "{sql}: {plain}");
        assert_eq!(plain, outcome(&client, checked.sql()).await, "{sql}\n{}", checked.sql());
    }
}

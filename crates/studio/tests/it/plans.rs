//! Look-ups and lists follow their indexes, however much there is to look through.

use crate::bed::Bed;

/// Statements with the types of their parameters and values for them.
const STATEMENTS: &[(&str, &str, &str)] = &[
    (include_str!("../../src/platform/token/find.sql"), "uuid", "gen_random_uuid()"),
    (include_str!("../../src/platform/token/touch.sql"), "uuid", "gen_random_uuid()"),
    (include_str!("../../src/platform/token/revoke_all.sql"), "uuid", "gen_random_uuid()"),
    (include_str!("../../src/platform/token/delete_ended.sql"), "", ""),
    (include_str!("../../src/platform/session/delete_ended.sql"), "", ""),
    (include_str!("../../src/platform/session/delete_all.sql"), "uuid", "gen_random_uuid()"),
    (include_str!("../../src/features/tokens/queries/count_live.sql"), "uuid", "gen_random_uuid()"),
    (
        include_str!("../../src/features/tokens/queries/list.sql"),
        "uuid, int8",
        "gen_random_uuid(), 100",
    ),
    (
        include_str!("../../src/features/users/queries/list.sql"),
        "text, text, text, int8",
        "'', 'person-5', 'person-6', 201",
    ),
    (
        include_str!("../../src/features/users/queries/has_other_administrator.sql"),
        "uuid",
        "gen_random_uuid()",
    ),
    (
        include_str!("../../src/features/plugins/queries/list.sql"),
        "uuid, int8",
        "gen_random_uuid(), 201",
    ),
    (include_str!("../../src/features/plugins/queries/sweep.sql"), "", ""),
    (
        include_str!("../../src/features/plugins/queries/complete.sql"),
        "uuid, int4, bytea, int8",
        "gen_random_uuid(), 1, sha256('x'), 1",
    ),
];

#[tokio::test]
async fn no_look_up_and_no_list_reads_a_whole_table() {
    let bed = Bed::new().await;
    let client = bed.client().await;
    client.batch_execute(include_str!("bed/many_rows.sql")).await.unwrap();
    client.batch_execute("set plan_cache_mode = force_generic_plan").await.unwrap();
    for (number, (statement, types, values)) in STATEMENTS.iter().enumerate() {
        let [types, values] = [types, values]
            .map(|list| if list.is_empty() { String::new() } else { format!("({list})") });
        client
            .batch_execute(&format!("prepare statement_{number}{types} as {statement}"))
            .await
            .unwrap();
        let explained = format!("explain execute statement_{number}{values}");
        let plan: Vec<String> =
            client.query(&explained, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(!plan.contains("Seq Scan"), "{statement}\n{plan}");
    }
}

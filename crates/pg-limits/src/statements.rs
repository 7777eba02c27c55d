//! The statements that Rust sends, with the types of their parameters.

use std::borrow::Cow;

use tokio_postgres::types::Type;

use crate::schema;

pub(crate) struct Sql {
    text: &'static str,
    pub(crate) types: &'static [Type],
}

impl Sql {
    pub(crate) fn text(&self, schema: &str) -> Cow<'static, str> {
        schema::place(self.text, schema)
    }
}

macro_rules! sql {
    ($name:ident, $file:literal, [$($type:expr),*]) => {
        pub(crate) static $name: Sql =
            Sql { text: include_str!(concat!("../sql/", $file)), types: &[$($type),*] };
    };
}

sql!(CLAIM, "claim.sql", [Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::INT8, Type::INT8]);
sql!(RELEASE, "release.sql", [Type::TEXT, Type::INT4, Type::UUID]);
sql!(RELEASE_BY_ID, "release_by_id.sql", [Type::UUID]);
sql!(RELEASE_REPLICA, "release_replica.sql", [Type::UUID]);
sql!(
    REGISTER,
    "register.sql",
    [Type::UUID, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT_ARRAY, Type::INT4_ARRAY]
);
sql!(HEARTBEAT, "heartbeat.sql", [Type::UUID, Type::TEXT]);
sql!(COUNT, "count.sql", [Type::TEXT, Type::TEXT, Type::INT4, Type::INT8, Type::INT4]);
sql!(UNCOUNT, "uncount.sql", [Type::TEXT, Type::TEXT, Type::INT4, Type::INT8]);
sql!(
    ENTER,
    "enter.sql",
    [
        Type::UUID,
        Type::TEXT,
        Type::TEXT,
        Type::INT4,
        Type::INT8,
        Type::INT4,
        Type::INT8,
        Type::INT4,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY
    ]
);
sql!(COUNT_ONE, "count_one.sql", [Type::TEXT, Type::TEXT, Type::INT4, Type::INT8, Type::INT4]);
sql!(
    COUNT_TOGETHER,
    "count_together.sql",
    [Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT4_ARRAY]
);
sql!(
    ENTER_TOGETHER,
    "enter_together.sql",
    [
        Type::UUID,
        Type::INT8,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT4_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT4_ARRAY
    ]
);
sql!(READY_REPLICAS, "ready_replicas.sql", []);
sql!(REPAIR, "repair.sql", []);
sql!(SWEEP, "sweep.sql", [Type::INT4]);
sql!(SET_CAP, "set_cap.sql", [Type::TEXT, Type::INT4]);
sql!(SET_SHADOW, "set_shadow.sql", [Type::TEXT, Type::BOOL]);
sql!(ASK_STOP, "ask_stop.sql", [Type::UUID]);
sql!(STOP_REQUESTS, "stop_requests.sql", [Type::UUID_ARRAY]);
sql!(IS_HELD, "is_held.sql", [Type::TEXT, Type::INT4, Type::UUID]);
sql!(CAPS, "caps.sql", []);
sql!(HOLDERS, "holders.sql", []);
sql!(REPLICAS, "replicas.sql", []);
sql!(BACKEND, "backend.sql", []);
sql!(END_BACKEND, "end_backend.sql", [Type::INT4, Type::INT8]);
sql!(
    ATTEMPT,
    "attempt.sql",
    [
        Type::UUID,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8
    ]
);
sql!(
    FAIL_ATTEMPT,
    "fail_attempt.sql",
    [
        Type::UUID,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::BOOL
    ]
);
sql!(
    END_ATTEMPT,
    "end_attempt.sql",
    [Type::UUID, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::BOOL_ARRAY]
);

/// The statements of requests: prepared once a connection, where statements may be prepared.
pub(crate) static OF_REQUESTS: [&Sql; 8] =
    [&CLAIM, &RELEASE, &COUNT, &COUNT_ONE, &COUNT_TOGETHER, &ENTER, &ENTER_TOGETHER, &ATTEMPT];

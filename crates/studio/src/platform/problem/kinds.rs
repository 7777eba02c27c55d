//! Every kind of problem, with the text of its page.

/// A kind of problem, as its page explains it.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The last part of the type.
    pub suffix: &'static str,
    /// The page's title.
    pub title: &'static str,
    /// What it means, and what to do.
    pub meaning: &'static str,
}

const fn kind(suffix: &'static str, title: &'static str, meaning: &'static str) -> Kind {
    Kind { suffix, title, meaning }
}

/// Every kind of problem that Studio answers with.
pub const KINDS: &[Kind] = &[
    kind(
        "bad-request",
        "The request is not well formed",
        "The detail says which part. Sending it again unchanged gives the same answer.",
    ),
    kind(
        "sign-in-required",
        "Sign in first",
        "The request came without a session, or its session has ended: 8 hours after its last use, 24 hours after sign-in.",
    ),
    kind(
        "wrong-credentials",
        "The name or the password is wrong",
        "Studio does not say which of the two, and takes as long for either.",
    ),
    kind(
        "forbidden",
        "Your role does not allow this",
        "The member `permission` names what is missing. An administrator can change the role of an account.",
    ),
    kind(
        "invalid-token",
        "The token is not valid",
        "It is no token, has expired, was revoked or replaced, or its owner is disabled; Studio does not say which. Its owner can make a new one. When a request brings a token and a session, the token counts.",
    ),
    kind(
        "too-many-tokens",
        "You have as many tokens as one may",
        "`limit` is how many live tokens an account has at most. Revoke one that is no longer needed.",
    ),
    kind(
        "token-ended",
        "The token has ended",
        "It has expired or was revoked, and nothing brings it back. Make a new one.",
    ),
    kind(
        "session-required",
        "A token may not do this",
        "Tokens, sessions, accounts, settings and plugins are managed in a session only, so that a lost token cannot make itself another way in.",
    ),
    kind(
        "wrong-password",
        "The old password is wrong",
        "A password is changed by whoever knows it. An administrator can set a new one.",
    ),
    kind(
        "name-taken",
        "There is such an account already",
        "Names that look alike are one name: upper and lower case, and blanks around it, make no difference.",
    ),
    kind(
        "own-account",
        "This is your own account",
        "You cannot lower your own role, disable yourself, or set your own password without the old one: another administrator can.",
    ),
    kind(
        "last-administrator",
        "There would be no administrator left",
        "Make somebody else an administrator first.",
    ),
    kind(
        "too-many-uploads",
        "Too many uploads",
        "`limit` is how many plugins a user uploads in `windowSeconds`. An upload that failed through a fault of ours does not count. Try again after Retry-After.",
    ),
    kind(
        "upload-too-large",
        "The upload is too large",
        "`byteLimit` is the most bytes that a plugin has. Nothing was stored.",
    ),
    kind(
        "upload-too-slow",
        "The upload took too long",
        "Nothing came for too long a time, or all of it took longer than an upload may. Nothing was stored.",
    ),
    kind(
        "upload-broken",
        "The upload did not arrive whole",
        "It ended before the length that was declared, or its SHA-256 is not the one in X-Content-SHA256. Nothing was stored.",
    ),
    kind(
        "foreign-origin",
        "The request comes from a foreign page",
        "A request that changes something in a session must carry an Origin header with Studio's own address; one with a token need not. Behind a proxy, set http.public_origin.",
    ),
    kind(
        "not-found",
        "There is nothing here",
        "The address names nothing, or something that you may not see.",
    ),
    kind(
        "method-not-allowed",
        "The method does not fit the address",
        "The header Allow lists the methods that do.",
    ),
    kind(
        "too-many-heavy-requests",
        "Too many heavy requests",
        "Requests whose cost grows with the data are counted for each user and for the whole installation, over all replicas. `scope` says which limit was reached, `limit` its size. Try again after Retry-After.",
    ),
    kind(
        "rate-limited",
        "Too many requests",
        "Requests by API token are counted in a window of the token and in one of its user, over all replicas. `limit` and `windowSeconds` are those of the window that is full; try again after Retry-After. Requests that were refused are not counted. RateLimit tells what remains.",
    ),
    kind(
        "too-many-in-flight",
        "Too many requests in flight",
        "A token may have `limit` requests under way at one time, over all replicas. Wait for one of them to end.",
    ),
    kind(
        "limits-unavailable",
        "The limits cannot be checked now",
        "Heavy requests and sign-ins are refused while their limits cannot be counted. Try again after Retry-After.",
    ),
    kind(
        "login-throttled",
        "Too many failed sign-ins",
        "Failed sign-ins are counted over all replicas: by name and network, by network, and by name. After too many, none is checked until Retry-After, whether or not the name exists or the password is right; each failure after that doubles the wait. A sign-in that succeeds forgets the failures of its name in its network.",
    ),
    kind(
        "invalid-settings",
        "The settings cannot be so",
        "`errors` names each setting that cannot be: there is none of that name, its value is not of its kind or out of its range, or it does not fit the others. Nothing was changed.",
    ),
    kind(
        "settings-changed",
        "Somebody changed the settings since",
        "The header If-Match named another version than the present one. Read the settings again, and decide again.",
    ),
    kind(
        "heavy-request-timed-out",
        "The request was stopped at its time bound",
        "`timeBoundSeconds` is the bound. Ask for less: a shorter period, or a filter.",
    ),
    kind(
        "request-timed-out",
        "The request took too long",
        "Every request has a total time limit. Studio or its database is overloaded; try again later.",
    ),
    kind(
        "page-too-deep",
        "The page lies too deep",
        "Page numbers reach the first rows only. Pass the `next` of an answer as `after` instead: that reads the same however deep.",
    ),
    kind(
        "invalid-cursor",
        "The cursor does not fit",
        "A cursor is only good for the filter and the version that it was given out for, and must be passed unchanged.",
    ),
    kind(
        "answer-too-large",
        "The answer is too large",
        "The page would exceed its byte limit. Ask for fewer rows.",
    ),
    kind(
        "database-unavailable",
        "The database is unavailable",
        "Studio cannot reach its database, or all connections are in use. Try again after Retry-After.",
    ),
    kind(
        "query-stopped",
        "The query was stopped by an administrator",
        "An administrator ended it, in Studio or in the database. The audit trail says who did it in Studio.",
    ),
    kind(
        "permit-still-held",
        "The work has not ended",
        "The heavy request was asked to stop, and did not end in time; or the replica that ran it is gone, as `replicaState` says. Nothing was freed, since work without its permit would let too much run at once. The permit is free when the work has ended, or when its lease has: at its time bound and the margin.",
    ),
    kind(
        "invalid-sql",
        "The query cannot be run",
        "The SQL console runs one SELECT over the views of its catalogue. The detail names what it met; `construct` or `sqlstate` says the same to programs.",
    ),
    kind(
        "query-too-large",
        "The query needs too much space",
        "It needs more memory or temporary space than a query of the console may use. Ask for fewer rows or columns.",
    ),
    kind(
        "console-off",
        "The SQL console is off",
        "It has no address of its login roles, or these may do more than they should. `studio config check` says which; `studio migrate` sets them up.",
    ),
    kind(
        "draining",
        "This replica is shutting down",
        "Another replica answers; a load balancer notices by itself.",
    ),
    kind("internal", "Studio failed", "The fault is logged under the request's id."),
];

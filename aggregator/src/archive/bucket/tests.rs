use tokio::runtime::Builder;

use super::*;

fn bucket(prefix: &str) -> Bucket {
    let settings = S3 {
        endpoint: Some("http://127.0.0.1:9/".to_owned()),
        region: Some("us-east-1".to_owned()),
        allow_http: true,
        ..S3::default()
    };
    Bucket::new("jobs", prefix, &settings).unwrap()
}

#[test]
fn messages_name_the_object() {
    let address = |prefix, name| bucket(prefix).address(name).display().to_string();
    assert_eq!(address("", "manifest.json"), "s3://jobs/manifest.json");
    assert_eq!(address("a/b", "manifest.json"), "s3://jobs/a/b/manifest.json");
    assert_eq!(address("a/b", ""), "s3://jobs/a/b");
    assert_eq!(bucket("").key("raw/cluster=c1/x").unwrap().as_ref(), "raw/cluster=c1/x");
    assert_eq!(bucket("a").key("raw/x").unwrap().as_ref(), "a/raw/x");
    let error = bucket("").key("raw//x").unwrap_err().to_string();
    assert!(error.starts_with("s3://jobs/raw//x: no object"), "{error}");
}

#[test]
fn it_can_be_used_and_dropped_where_others_wait_for_the_network() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bucket = bucket("");
        assert_eq!(bucket.driver.wait(async { 7 }), Some(7));
        drop(bucket);
    });
}

#[test]
fn what_is_closed_to_us_is_told_from_what_is_wrong() {
    let source = || Box::new(io::Error::other("403 Forbidden"));
    let path = || "manifest.json".to_owned();
    let is_closed = |error: Error| refused(Path::new("s3://jobs/x"), &error).is_closed();
    assert!(is_closed(Error::PermissionDenied { path: path(), source: source() }));
    assert!(is_closed(Error::Unauthenticated { path: path(), source: source() }));
    let machine = "Error performing PUT http://169.254.169.254/latest/api/token in 3s";
    let generic = |text: &str| Error::Generic { store: "S3", source: text.into() };
    assert!(is_closed(generic(machine)));
    assert!(!is_closed(generic("NoSuchBucket")));
    assert!(!is_closed(generic("error sending request for http://s3.site:9000/jobs")));
}

#[test]
fn keys_come_from_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    std::fs::write(&path, "abc\n").unwrap();
    assert_eq!(secret(&path).unwrap(), "abc");
    std::fs::write(&path, "\n").unwrap();
    assert!(secret(&path).unwrap_err().to_string().ends_with("it is empty; expected a key"));
}

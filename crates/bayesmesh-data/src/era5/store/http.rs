//! A store on the web: every key is a file under an address.

use std::thread;
use std::time::Duration;

use ureq::Agent;
use ureq::http::Response;
use zarrs::storage::byte_range::{ByteRange, ByteRangeIterator};
use zarrs::storage::{
    Bytes, MaybeBytes, MaybeBytesIterator, ReadableStorageTraits, StorageError, StoreKey,
};

/// How often a request is made before it is given up.
const ATTEMPTS: u32 = 4;

/// Reads by GET, and by HEAD for sizes. Connections are kept and shared by threads.
#[derive(Debug)]
pub(in crate::era5) struct HttpStore {
    base: String,
    agent: Agent,
}

impl HttpStore {
    pub fn new(base: &str) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .timeout_recv_body(Some(Duration::from_secs(600)));
        let host = base.split("://").nth(1).unwrap_or_default();
        if ["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local)) {
            // A proxy does not know what is local to this machine.
            config = config.proxy(None);
        }
        Self { base: base.to_owned(), agent: config.build().into() }
    }

    /// The answer to a request for a key: status and body.
    fn ask(&self, key: &StoreKey, range: Option<&str>) -> Result<(u16, Vec<u8>), StorageError> {
        self.retried(key, || {
            let mut request = self.agent.get(self.address(key));
            if let Some(range) = range {
                request = request.header("Range", range);
            }
            let mut response = request.call()?;
            let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec()?;
            Ok((response.status().as_u16(), body))
        })
    }

    fn address(&self, key: &StoreKey) -> String {
        format!("{}/{}", self.base, key.as_str())
    }

    /// Asks again, after a while, where the network or the server failed.
    fn retried<T>(
        &self,
        key: &StoreKey,
        request: impl Fn() -> Result<(u16, T), ureq::Error>,
    ) -> Result<(u16, T), StorageError> {
        let mut attempt = 1;
        loop {
            let problem = match request() {
                Ok((status, _)) if status == 429 || status >= 500 => format!("status {status}"),
                Ok(answer) => return Ok(answer),
                Err(error) => error.to_string(),
            };
            if attempt == ATTEMPTS {
                let address = self.address(key);
                return Err(StorageError::Other(format!("{address}: {problem}")));
            }
            thread::sleep(Duration::from_millis(125 << attempt));
            attempt += 1;
        }
    }

    /// A piece of a file; `None` where there is no such file.
    fn piece(&self, key: &StoreKey, range: ByteRange) -> Result<MaybeBytes, StorageError> {
        let header = match range {
            ByteRange::FromStart(0, None) => None,
            ByteRange::FromStart(start, None) => Some(format!("bytes={start}-")),
            ByteRange::FromStart(_, Some(0)) | ByteRange::Suffix(0) => {
                return Ok(Some(Bytes::new()));
            }
            ByteRange::FromStart(start, Some(length)) => {
                Some(format!("bytes={start}-{}", start + length - 1))
            }
            ByteRange::Suffix(length) => Some(format!("bytes=-{length}")),
        };
        let (status, body) = self.ask(key, header.as_deref())?;
        match status {
            404 | 410 => Ok(None),
            206 => Ok(Some(body.into())),
            // All of it: what was asked for, or a server that knows no ranges.
            200 => {
                let size = body.len() as u64;
                let (start, end) = (range.start(size.max(suffix(range))), range.end(size));
                let body = Bytes::from(body);
                match start <= end && end <= size {
                    true => Ok(Some(body.slice(start as usize..end as usize))),
                    false => Err(StorageError::Other(format!(
                        "{}: {size} bytes, which is less than {range}",
                        self.address(key)
                    ))),
                }
            }
            _ => Err(StorageError::Other(format!("{}: status {status}", self.address(key)))),
        }
    }
}

/// The length of a piece at the end, which a file must have for it to begin somewhere.
fn suffix(range: ByteRange) -> u64 {
    match range {
        ByteRange::Suffix(length) => length,
        ByteRange::FromStart(..) => 0,
    }
}

impl ReadableStorageTraits for HttpStore {
    fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        ranges: ByteRangeIterator<'a>,
    ) -> Result<MaybeBytesIterator<'a>, StorageError> {
        let mut pieces = Vec::new();
        for range in ranges {
            match self.piece(key, range)? {
                None => return Ok(None),
                Some(bytes) => pieces.push(Ok(bytes)),
            }
        }
        Ok(Some(Box::new(pieces.into_iter())))
    }

    fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let size = |response: &Response<ureq::Body>| {
            let length = response.headers().get("content-length")?;
            length.to_str().ok()?.parse::<u64>().ok()
        };
        let (status, size) = self.retried(key, || {
            let response = self.agent.head(self.address(key)).call()?;
            Ok((response.status().as_u16(), size(&response)))
        })?;
        match (status, size) {
            (404 | 410, _) => Ok(None),
            (200, Some(size)) => Ok(Some(size)),
            _ => Err(StorageError::UnknownKeySize(key.clone())),
        }
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

//! `sekisho serve`: the server, on the policies of a file or on a default one.

use std::{
    error::Error as _,
    io::{self, ErrorKind, Write},
    sync::Arc,
};

use sekisho::{
    GatewaySettings, Limiter, ListenAddress, OnStoreError, PolicySet, Share, SharedStoreSettings,
    SnapshotError, SnapshotFault, SnapshotSettings,
};
use sekisho_server::{
    OpenError, ServeError, ServeGateway, ServeOptions, Server, ServerStore, StartError,
    door::gateway::{GatewayOptions, ProxyOptions, Upstream},
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use crate::{
    args::Serve,
    command::{self, bound},
    report::{Report, out},
};

/// What holds without a file.
const DEFAULT: &str =
    "[[policy]]\nname = \"default\"\nkey = [\"ip\"]\nlimits = [\"60/min sliding-log\"]\n";

pub(super) fn run(args: &Serve) -> Result<(), Report> {
    let set = match &args.config {
        Some(path) => command::policies(path)?,
        None => PolicySet::parse(DEFAULT).map_err(Report::failed)?,
    };
    let gateway = set.settings().listen.gateway.as_ref().map(gateway).transpose()?;
    let mut options = options(set)?;
    options.http = args.listen.map(Into::into).or(options.http);
    options.admin = args.admin.map(Into::into).or(options.admin);
    options.gateway = gateway;
    serve(options)
}

/// Returns what a policy file says of a server: where it counts, and where it listens. From here on there is a log.
pub(super) fn options(set: PolicySet) -> Result<ServeOptions, Report> {
    tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).with_target(false).init();
    ServeOptions::open(set).map_err(|error| match &error {
        StartError::Store(error) => no_store(error),
        StartError::Snapshot(error) => no_snapshot(error),
        _ => Report::caused(&error),
    })
}

/// Says why the snapshot cannot be had that a policy file names, and how to start without it.
fn no_snapshot(error: &SnapshotError) -> Report {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let message = format!("`snapshot` of `[store]`: {error}{cause}");
    match error {
        SnapshotError::InUse { .. } => Report::failed(message)
            .hint("stop the other server, or give each its own file; two that shall count together share a `url`"),
        SnapshotError::Refused { path, fault } => Report::input(message).hint(match fault {
            SnapshotFault::NoFile => "name a file of its own".to_owned(),
            SnapshotFault::Foreign => format!(
                "if nobody needs {0}, remove it; else name another file",
                path.display()
            ),
            SnapshotFault::Version(_) => format!(
                "start the version that wrote it; or remove {} to start anew, with a full quota for everybody",
                path.display()
            ),
            _ => format!(
                "put back a good copy; or remove {} to start anew, with a full quota for everybody",
                path.display()
            ),
        }),
        _ => Report::input(message)
            .hint("its folder must be there, and this user must be allowed to read the file and to write into the folder"),
    }
}

/// Says why the store cannot be had that a policy file names.
fn no_store(error: &OpenError) -> Report {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let report = Report::input(format!("{error}{cause}"));
    match error {
        OpenError::File { .. } => {
            report.hint("the file must be there, and this user must be allowed to read it")
        }
        _ => report,
    }
}

/// Returns the gateway that a policy file asks for.
fn gateway(settings: &GatewaySettings) -> Result<ServeGateway, Report> {
    let upstream: Upstream = settings
        .to
        .parse()
        .map_err(|error| Report::input(format!("`{}`: {error}", settings.to)))?;
    let listen = GatewayOptions::new(settings.at.clone());
    Ok(ServeGateway { listen, proxy: ProxyOptions::new(upstream), log: None })
}

/// Serves until the program is told to stop.
pub(super) fn serve(options: ServeOptions) -> Result<(), Report> {
    let limiter = Arc::clone(&options.limiter);
    raise_descriptors();
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Report::failed)?;
    runtime.block_on(async {
        let stopped = stopped()?;
        let server = Server::bind(options).await.map_err(|error| {
            let report = Report::caused(&error);
            match hint(&error) {
                Some(hint) => report.hint(hint),
                None => report,
            }
        })?;
        announce(&limiter, &server)?;
        server.run(stopped).await.map_err(|error| {
            Report::caused(&error).hint(
                "the file is as it was then; there must be room on the disk, and this user must be allowed to write into its folder",
            )
        })
    })
}

/// Returns what to do about a server that does not start.
fn hint(error: &ServeError) -> Option<&'static str> {
    let ServeError::Bind { address, source } = error else { return None };
    let is_socket = address.tcp().is_none();
    Some(match source.kind() {
        ErrorKind::AddrInUse if is_socket => {
            "a server listens there, or the file is no socket: stop it, or name another path in the policy file's `[listen]`"
        }
        ErrorKind::AddrInUse => {
            "another program listens there: stop it, or choose another address, in the policy file's `[listen]` or with \
             `--listen` or `--admin`"
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address",
        ErrorKind::PermissionDenied if is_socket => {
            "the folder must be one that this user may write into"
        }
        ErrorKind::PermissionDenied => "ports below 1024 need rights that this user has not",
        ErrorKind::NotFound => "the folder of the socket must be there",
        _ => return None,
    })
}

/// Lets this process open as many connections as the system allows it to: the usual first bound is 1,024.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open connections stays as it is");
    }
}

/// Returns a future that is ready when the program is told to stop.
fn stopped() -> Result<impl Future<Output = ()>, Report> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Report::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Report::failed)?;
    Ok(async move {
        std::future::poll_fn(|context| {
            let told =
                terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
            if told { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    })
}

/// Says what is limited, and how to see it.
fn announce(limiter: &Limiter<ServerStore>, server: &Server) -> Result<(), Report> {
    out(|to| {
        for policy in limiter.policies().policies() {
            writeln!(
                to,
                "policy {}: {}, by {}",
                policy.name(),
                policy.match_in_words(),
                policy.key_in_words()
            )?;
            if let Some(shared) = &limiter.policies().settings().store.shared {
                writeln!(to, "  {}", outage_in_words(policy.on_store_error(), shared))?;
            }
            for (plan, limits) in policy.plans() {
                let plan = if plan.is_empty() { String::new() } else { format!("plan {plan}: ") };
                for limit in limits {
                    let period = limit
                        .limit()
                        .as_metered()
                        .map_or(sekisho::Span::from_secs(1), |of| of.period().shortest());
                    writeln!(
                        to,
                        "  {plan}{}: {}",
                        limit.limit(),
                        bound::in_words(limit.limit(), period)
                    )?;
                }
            }
        }
        for warning in limiter.policies().warnings() {
            writeln!(to, "{warning}")?;
        }
        match &limiter.policies().settings().store.shared {
            None => writeln!(
                to,
                "scope: process; counts are in this process's memory, and {}",
                restart_in_words(limiter.policies().settings().store.snapshot.as_ref())
            )?,
            Some(shared) => writeln!(to, "scope: shared; counts are in {}", places(shared))?,
        }
        doors(to, server)
    })
}

/// Says where the doors are, and how to knock.
fn doors(to: &mut dyn Write, server: &Server) -> io::Result<()> {
    if let Some(address) = server.http_address() {
        let (curl, url) = for_curl(address);
        writeln!(to, "listening on {}; try", in_words(address))?;
        writeln!(to, "  {curl} -i {url}/auth")?;
        writeln!(to, "  {curl} -i '{url}/auth/v1/users?page=2'")?;
        writeln!(
            to,
            "  {curl} -s {url}/v1/check -d '{{\"limit\": \"5/min\", \"key\": \"alice\"}}'"
        )?;
    }
    if let Some(address) = server.resp_address() {
        writeln!(to, "RESP on {}; try", in_words(address).replace("http://", "redis://"))?;
        if let ListenAddress::Tcp(address) = address {
            let (host, port) = (address.ip(), address.port());
            writeln!(to, "  redis-cli -h {host} -p {port} CL.THROTTLE alice 4 5 60")?;
        }
    }
    if let Some(address) = server.gateway_address() {
        writeln!(
            to,
            "gateway on {}; requests that may pass go on to the one server behind it",
            in_words(address)
        )?;
    }
    if let Some(address) = server.admin_address() {
        writeln!(to, "health, readiness, metrics and the fullest keys on {}", in_words(address))?;
    }
    Ok(())
}

/// Returns what becomes of counts in memory when the server starts anew.
pub(super) fn restart_in_words(snapshot: Option<&SnapshotSettings>) -> String {
    match snapshot {
        None => "start anew with it".to_owned(),
        Some(SnapshotSettings { path, every, .. }) => format!(
            "survive a restart in {}, which is written every {every} and at the end",
            path.display()
        ),
    }
}

/// Returns where a shared store is, without how to get in.
pub(super) fn places(shared: &SharedStoreSettings) -> String {
    let places: Vec<_> = shared.addresses.iter().map(ToString::to_string).collect();
    places.join(", ")
}

/// Returns what a policy does while the shared store is down.
pub(super) fn outage_in_words(what: OnStoreError, shared: &SharedStoreSettings) -> String {
    let what = match what {
        OnStoreError::Allow => "its requests pass, uncounted".to_owned(),
        OnStoreError::Deny => "its requests are refused with 503".to_owned(),
        OnStoreError::Local if shared.local_share == Share::WHOLE => {
            "each server holds these limits by itself, so N servers let through up to N times as much".to_owned()
        }
        OnStoreError::Local => {
            let share = shared.local_share;
            format!(
                "each server holds {share} of these limits by itself, so N servers let through up to N x {share} of them"
            )
        }
    };
    format!("while the store is down, {what}")
}

/// Returns an address as people write it down: a URL where there can be one.
fn in_words(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => format!("http://{address}"),
        ListenAddress::Unix(_) => address.to_string(),
    }
}

/// Returns how curl is called for an address, and what its URLs begin with.
fn for_curl(address: &ListenAddress) -> (String, String) {
    match address {
        ListenAddress::Tcp(address) => ("curl".to_owned(), format!("http://{address}")),
        ListenAddress::Unix(path) => {
            let path = path.display().to_string().replace('\'', "'\\''");
            (format!("curl --unix-socket '{path}'"), "http://localhost".to_owned())
        }
    }
}

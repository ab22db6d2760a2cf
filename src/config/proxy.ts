/** The proxies of this machine, as given by `HTTPS_PROXY`, `HTTP_PROXY`, and `NO_PROXY`. */
export interface Proxies {
  /** Addresses like `http://user:password@proxy.example:3128`. */
  readonly https: string | undefined;
  readonly http: string | undefined;
  readonly no: string;
}

/**
 * Options for undici's EnvHttpProxyAgent, which everything uses except the client of the compute
 * service (decision 032).
 */
export const proxyOptions = ({ https, http, no }: Proxies) => ({
  ...(https === undefined ? {} : { httpsProxy: https }),
  ...(http === undefined ? {} : { httpProxy: http }),
  noProxy: no,
});

/** The passwords in the proxies' addresses, which must not be printed. */
export function passwordsIn(proxies: Proxies | undefined): readonly string[] {
  return [proxies?.https, proxies?.http].flatMap((address) => {
    const password = address === undefined ? "" : new URL(address).password;
    return password === "" ? [] : [decodeURIComponent(password)];
  });
}

/**
 * The proxy for an https address, or undefined to connect directly. It decides as undici's
 * EnvHttpProxyAgent does, which Slack's clients use. `NO_PROXY` has hosts separated by commas or
 * spaces. `example.com` and `.example.com` include the hosts below them, `*.example.com` means only
 * those below, `host:port` means that port alone, and `*` means all.
 */
export function proxyFor(address: string, proxies: Proxies | undefined): string | undefined {
  const proxy = proxies?.https ?? proxies?.http;
  const url = URL.parse(address);
  if (proxy === undefined || !url || url.protocol !== "https:") return undefined;
  const host = url.hostname
    .replace(/^\[(.+)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
  const port = url.port === "" ? "443" : url.port;
  const isDirect = (proxies?.no ?? "")
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      const parts = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+)(?::(\d+))?$/.exec(entry);
      const [, name = entry, only] = parts ?? [];
      if (name === "" || (only !== undefined && only !== port)) return false;
      const base = name.replace(/^\*?\./, "").replace(/\.$/, "");
      if (name === "*" || host.endsWith(`.${base}`)) return true;
      return host === base && !name.startsWith("*");
    });
  return isDirect ? undefined : proxy;
}

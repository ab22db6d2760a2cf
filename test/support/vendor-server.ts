import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { listen } from "../../sandbox/listen.ts";

/** Which file of a filled folder answers which address, and under which header its chain comes. */
const routes: readonly [RegExp, (parts: RegExpExecArray) => [file: string, header?: string]][] = [
  [/^\/root\.der$/, () => ["intel/root.crl"]],
  [
    /pckcrl\?ca=(\w+)&encoding=der$/,
    ([, ca]) => [`intel/pck-${ca}.crl`, "SGX-PCK-CRL-Issuer-Chain"],
  ],
  [/\/qe\/identity$/, () => ["intel/tdx-qe.json", "SGX-Enclave-Identity-Issuer-Chain"]],
  [
    /\/tcb\?fmspc=(\w+)(?:&update=early)?$/,
    ([, fmspc]) => [`intel/tcb/${fmspc}.json`, "TCB-Info-Issuer-Chain"],
  ],
  [/^\/(v[cl]ek)\/v1\/(\w+)\/crl$/, ([, signer, product]) => [`amd/${product}/${signer}.crl`]],
];

/** What goes wrong at the vendors. */
export interface VendorWeather {
  status: number;
  /** Of the body, where it is above 0. */
  size: number;
  headers: Record<string, string>;
  /** One bit in files whose names hold this. */
  damages: string;
  /** Answers come packed, whatever was asked for. */
  gzips: boolean;
}

/** The vendors on this machine, out of a folder that is filled; `onServed` is called as soon as an answer has left. */
export async function startVendors(folder: string, onServed: () => void = () => undefined) {
  const asked: string[] = [];
  const weather: VendorWeather = { status: 200, size: 0, headers: {}, damages: "", gzips: false };
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    asked.push(url);
    void answer(url).then(
      ({ body, headers }) => response.writeHead(weather.status, headers).end(body, onServed),
      () => response.writeHead(404).end(),
    );
  });
  async function answer(url: string) {
    const found = routes.flatMap(([pattern, fileOf]) => {
      const parts = pattern.exec(url);
      return parts ? [fileOf(parts)] : [];
    })[0];
    const [, product, hwid] = /^\/vcek\/v1\/(\w+)\/([0-9a-f]+)\?/.exec(url) ?? [];
    const veks = hwid ? await readdir(path.join(folder, `amd/${product}/vcek`)) : [];
    const [file, header] = found ?? [`amd/${product}/vcek/${veks[0] ?? ""}`];
    const body = await readFile(path.join(folder, file));
    const chain =
      header && (await readFile(path.join(folder, file.replace(/\.\w+$/, ".pem")), "utf8"));
    if (weather.damages !== "" && file.includes(weather.damages)) body[90] = (body[90] ?? 0) ^ 1;
    const sent = weather.size > 0 ? Buffer.alloc(weather.size) : body;
    return {
      body: weather.gzips ? gzipSync(sent) : sent,
      headers: {
        ...(weather.gzips ? { "content-encoding": "gzip" } : {}),
        ...weather.headers,
        ...(header ? { [header]: encodeURIComponent(chain ?? "") } : {}),
      },
    };
  }
  const { url, close } = await listen(server, 0);
  const addresses = { intel: url, intelRoot: `${url}/root.der`, amd: url };
  return { url, addresses, asked, weather, close };
}

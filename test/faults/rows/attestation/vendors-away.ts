import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";
import { listen } from "../../../../sandbox/listen.ts";

/** Which file of a filled folder answers which address, and under which header its chain comes. */
const routes: readonly [RegExp, (parts: RegExpExecArray) => string, header?: string][] = [
  [/^\/root\.der$/, () => "intel/root.crl"],
  [/pckcrl\?ca=(\w+)&encoding=der$/, ([, ca]) => `intel/pck-${ca}.crl`, "SGX-PCK-CRL-Issuer-Chain"],
  [/\/qe\/identity$/, () => "intel/tdx-qe.json", "SGX-Enclave-Identity-Issuer-Chain"],
  [/\/tcb\?fmspc=(\w+)$/, ([, fmspc]) => `intel/tcb/${fmspc}.json`, "TCB-Info-Issuer-Chain"],
  [/^\/(v[cl]ek)\/v1\/(\w+)\/crl$/, ([, signer, product]) => `amd/${product}/${signer}.crl`],
  [
    /^\/vcek\/v1\/(\w+)\/([0-9a-f]+)\?/,
    ([, product, hwid]) => `amd/${product}/vcek/${hwid}-0a00000000001754.der`,
  ],
];

/** The vendors on this machine, out of a folder that is filled; `served` is called as soon as an answer has left. */
export async function startVendors(folder: string, served: () => void) {
  let answers = 0;
  const server = createServer((request, response) => {
    const url = request.url ?? "";
    const found = routes.flatMap(([pattern, fileOf, header]) => {
      const parts = pattern.exec(url);
      return parts ? [{ file: path.join(folder, fileOf(parts)), header }] : [];
    })[0];
    const chain = found?.header && readFile(found.file.replace(/\.\w+$/, ".pem"), "utf8");
    Promise.all([found ? readFile(found.file) : undefined, chain]).then(
      ([body, text]) => {
        const headers = found?.header ? { [found.header]: encodeURIComponent(text ?? "") } : {};
        answers += 1;
        response.writeHead(body ? 200 : 404, headers).end(body, served);
      },
      () => response.writeHead(404).end(),
    );
  });
  const { url, close } = await listen(server, 0);
  return { url, close, answers: () => answers };
}

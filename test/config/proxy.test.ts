import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { passwordsIn, proxyFor } from "../../src/config/proxy.ts";
import { complete } from "./complete.ts";
import { policyTerms } from "../../src/features/index.ts";

const proxy = "http://proxy.example:3128";
const read = (env: Record<string, string>) =>
  loadConfig({ env: { ...complete, ...env }, role: "all", cwd: "/nowhere", terms: policyTerms })
    .proxies;

describe("the proxy", () => {
  it.each([
    [{}, undefined],
    [{ NO_PROXY: "a" }, undefined],
    [{ HTTPS_PROXY: proxy }, { https: proxy, http: undefined, no: "" }],
    [
      { https_proxy: proxy, HTTPS_PROXY: "http://other", NO_PROXY: "a,b" },
      { https: proxy, http: undefined, no: "a,b" },
    ],
    [
      { HTTP_PROXY: proxy, no_proxy: "c", NO_PROXY: "a" },
      { https: undefined, http: proxy, no: "c" },
    ],
  ])("is read from %o as %o", (env, expected) => {
    expect(read(env as Record<string, string>)).toEqual(expected);
  });

  it.each([
    ["https://compute.example.com", "", proxy],
    ["http://localhost:4000", "", undefined],
    ["https://compute.example.com", "example.com", undefined],
    ["https://compute.example.com", ".example.com", undefined],
    ["https://compute.example.com", "other.com, *.example.com", undefined],
    ["https://example.com", "*.example.com", proxy],
    ["https://example.com", ".example.com", undefined],
    ["https://notexample.com", "example.com", proxy],
    ["https://compute.example.com:8443", "compute.example.com:443", proxy],
    ["https://compute.example.com", "compute.example.com:443", undefined],
    ["https://COMPUTE.example.com.", "Compute.Example.com", undefined],
    ["https://[fd00::7]", "fd00::7", undefined],
    ["https://[fd00::7]:8443", "[fd00::7]:8443", undefined],
    ["https://10.0.0.7", "10.0.0.7 10.0.0.8", undefined],
    ["https://compute.example.com", "*", undefined],
    ["https://10.0.0.7", "*", undefined],
    ["https://127.0.0.1:8443", "127.0.0.0/8", undefined],
    ["https://128.0.0.1:8443", "127.0.0.0/8", proxy],
    ["https://10.20.1.2", "10.0.0.0/16, 10.20.0.0/16", undefined],
    ["https://[::ffff:10.20.1.2]", "10.20.0.0/16", undefined],
    ["https://10.20.1.2", "::/0", proxy],
    ["https://[fd00::7]", "fd00::/8", undefined],
    ["https://[fe00::7]", "fd00::/8", proxy],
    ["https://[fd00::7]:8443", "[fd00::]/8", undefined],
    ["https://[fd00::7]", "FD00:0:0::0007", undefined],
    ["https://10.0.0.7", "10.0.0.0/33 10.0.0.0/ /8 010.0.0.0/8", proxy],
    ["https://10.0.0.7", "0.0.7", proxy],
    ["https://10.0.0.0.example", "10.0.0.0/8", proxy],
    ["wss://wss.slack.example", "", proxy],
  ])("for %s with NO_PROXY=%s is %s", (address, no, expected) => {
    expect(proxyFor(address, { https: proxy, http: undefined, no })).toBe(expected);
  });

  it("has a password that is never printed", () => {
    const proxies = read({ HTTPS_PROXY: "http://me:p%25w@proxy.example" });
    expect(passwordsIn(proxies)).toEqual(["p%w"]);
  });
});

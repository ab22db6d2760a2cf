import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Compute } from "../../../src/fleet/compute/compute.ts";
import { mayReach, parseBaseUrl } from "../../../src/fleet/compute/reach.ts";
import { UserError } from "../../../src/errors.ts";
import { answering, clientOf, failureOf, key, says, vmRecord } from "./answering.ts";

const pem = (name: string) =>
  readFileSync(join(import.meta.dirname, "certificates", `${name}.pem`), "utf8");

const trusting = (name: string) => () => ({ ca: pem(name), cert: undefined, key: undefined });

describe("an id", () => {
  const hostile = [
    "",
    ".",
    "..",
    "../projects/1",
    "..%2fprojects",
    "a%2fb",
    "a/b",
    "?x=",
    "vm-1?x=",
    "#",
    "vm-1#x",
    "vm\u0000",
    "vm\n1",
    "vm-1\r\nX-Evil: 1",
    "vm 1",
    "vm\\1",
    "-vm",
    "ｖｍ",
    "v".repeat(201),
  ];
  const calls: [string, (compute: Compute, id: string) => Promise<unknown>][] = [
    ["a VM read", (compute, id) => compute.vms.get(id)],
    ["a VM change", (compute, id) => compute.vms.restart(id)],
    ["a project's VMs", (compute, id) => compute.projects.vms(id)],
    ["a project's deletion", (compute, id) => compute.projects.delete(id)],
  ];

  it.each(calls)("is refused before anything is sent when it can't be one: %s", async (_, call) => {
    await using server = await answering(says(vmRecord));
    await using compute = clientOf(server.url);
    for (const id of hostile)
      await expect(call(compute, id), JSON.stringify(id)).rejects.toBeInstanceOf(UserError);
    expect(server.asked).toEqual([]);
  });

  it("passes in the usual forms, and the path is the template's", async () => {
    await using server = await answering((request, response) => {
      const id = decodeURIComponent(request.url?.split("/").at(-1) ?? "");
      says({ ...vmRecord, id })(request, response);
    });
    await using compute = clientOf(`${server.url}/api/`);
    for (const id of ["vm-1", "4d1f7a52-1c3b-4f7e-9d6f-0a1b2c3d4e5f", "i_0.a:b~c", "12"])
      await compute.vms.get(id);
    expect(server.asked).toEqual([
      "GET /api/v1/vms/vm-1",
      "GET /api/v1/vms/4d1f7a52-1c3b-4f7e-9d6f-0a1b2c3d4e5f",
      "GET /api/v1/vms/i_0.a%3Ab~c",
      "GET /api/v1/vms/12",
    ]);
  });

  it("is sent in the body when it is a snapshot's, so a slash is fine and a space is not", async () => {
    await using server = await answering(says({}));
    await using compute = clientOf(server.url);
    await compute.vms.restore("vm-1", "snaps/vm-1/7");
    for (const id of ["", "a b", "a\nb", "ä"])
      await expect(compute.vms.restore("vm-1", id)).rejects.toBeInstanceOf(UserError);
    expect(server.asked).toHaveLength(1);
  });
});

describe("the base URL", () => {
  it.each([
    ["http://169.254.169.254"],
    ["http://[fe80::1]"],
    ["http://0.0.0.0:3000"],
    ["http://[::ffff:169.254.169.254]"],
  ])("%s is refused with a sentence that doesn't repeat it", (baseUrl) => {
    const parse = () => parseBaseUrl(baseUrl, true);
    expect(parse).toThrow(UserError);
    expect(parse).not.toThrow(new URL(baseUrl).hostname);
  });

  it.each([
    ["https://compute.example.com", "public"],
    ["https://93.184.216.34", "public"],
    ["http://127.0.0.1:4000", "loopback"],
    ["http://localhost:4000", "loopback"],
    ["http://[::1]:4000", "loopback"],
    ["http://2130706433/", "loopback"],
    ["http://compute:8080", "private"],
    ["http://compute.internal", "private"],
    ["https://10.1.2.3", "private"],
  ])("%s may reach what is %s", (baseUrl, reach) => {
    expect(parseBaseUrl(baseUrl, false).reach).toBe(reach);
  });

  it.each(["", "two words", "line\nbreak", "schlüssel"])(
    "goes with a key that can be a header: %j is refused",
    (apiKey) => {
      expect(() => clientOf("https://compute.example.com", { apiKey })).toThrow(UserError);
    },
  );
});

const publicUrl = "https://compute.example.com";
type Bytes = readonly [number, number, number, number];
const byte = fc.integer({ min: 0, max: 255 });
/** The first of them are where ranges begin and end. */
const addresses4: fc.Arbitrary<Bytes> = fc.tuple(
  fc.oneof(fc.constantFrom(0, 10, 100, 127, 169, 172, 192, 198, 224, 240, 255), byte),
  fc.oneof(fc.constantFrom(0, 15, 16, 31, 32, 63, 64, 127, 128, 168, 254), byte),
  byte,
  byte,
);
const hex = (...pair: readonly [number, number]) => (pair[0] * 256 + pair[1]).toString(16);
/** As in RFC 4291 (mapped), 2765 (translated), 6052 (NAT64), 3056 (6to4). */
const holders: readonly ((bytes: Bytes) => string)[] = [
  (bytes) => `::ffff:${bytes.join(".")}`,
  (bytes) => `0:0:0:0:0:ffff:${bytes.join(".")}`,
  (bytes) => `::ffff:${bytes.join(".")}%br-lan.7`,
  ([a, b, c, d]) => `::ffff:${hex(a, b)}:${hex(c, d)}`,
  (bytes) => `::ffff:0:${bytes.join(".")}`,
  (bytes) => `64:ff9b::${bytes.join(".")}`,
  ([a, b, c, d]) => `64:ff9b:0:0:0:0:${hex(a, b)}:${hex(c, d)}`,
  ([a, b, c, d]) => `2002:${hex(a, b)}:${hex(c, d)}::1`,
];

function reachesOf(address: string) {
  return (["public", "private", "loopback"] as const).filter((reach) =>
    mayReach(address, { reach, allowed: [] }),
  );
}

describe("a name that leads elsewhere", () => {
  it("may reach public addresses; private and loopback ones only when the base URL says so itself; link-local never", () => {
    const table: [address: string, ...reaches: string[]][] = [
      ["93.184.216.34", "public", "private", "loopback"],
      ["2606:2800:220:1::1", "public", "private", "loopback"],
      ["10.0.0.1", "private", "loopback"],
      ["172.20.0.3", "private", "loopback"],
      ["192.168.1.1", "private", "loopback"],
      ["100.100.100.200", "private", "loopback"],
      ["fd00:ec2::254", "private", "loopback"],
      ["127.0.0.1", "loopback"],
      ["127.8.8.8", "loopback"],
      ["::1", "loopback"],
      ["::ffff:127.0.0.1", "loopback"],
      ["169.254.169.254"],
      ["::ffff:169.254.169.254"],
      ["fe80::1"],
      ["0.0.0.0"],
      ["0.1.2.3"],
      ["::"],
      ["0:0:0:0:0:0:0:1", "loopback"],
      ["100.64.0.1", "private", "loopback"],
      ["192.0.0.1", "private", "loopback"],
      ["198.19.0.1", "private", "loopback"],
      ["fec0::1", "private", "loopback"],
      // IPv4 within IPv6: compatible, mapped, translated, NAT64, 6to4, Teredo, and a network's own NAT64
      ["::127.0.0.1", "loopback"],
      ["::7f00:1", "loopback"],
      ["0:0:0:0:0:0:10.0.0.1", "private", "loopback"],
      ["::169.254.169.254"],
      ["::ffff:10.0.0.1", "private", "loopback"],
      ["0:0:0:0:0:ffff:7f00:1", "loopback"],
      ["::ffff:0:10.0.0.1", "private", "loopback"],
      ["64:ff9b::10.0.0.1", "private", "loopback"],
      ["64:ff9b::127.0.0.1", "loopback"],
      ["64:ff9b::169.254.169.254"],
      ["64:ff9b::93.184.216.34", "public", "private", "loopback"],
      ["64:ff9b:1::10.0.0.1"],
      ["2002:7f00:1::1", "loopback"],
      ["2002:c0a8:101::", "private", "loopback"],
      ["2002:a9fe:a9fe::1"],
      ["2002:5db8:d822::1", "public", "private", "loopback"],
      ["2001:0:5db8:d822::1"],
      ["2001:db8::1", "public", "private", "loopback"],
      ["fe80::1%eth0"],
      ["fe80::1%br-lan.7"],
      ["::ffff:169.254.169.254%br-lan.7"],
      ["FE80::1"],
      ["febf:ffff::1"],
      ["::FFFF:A9FE:A9FE"],
      ["0:0:0:0:0:ffff:169.254.169.254"],
      ["169.254.169.254."],
      ["0xa9fea9fe"],
      ["0251.0376.0251.0376"],
      ["2852039166"],
      ["ff02::1"],
      ["224.0.0.1"],
      ["240.0.0.1"],
      ["255.255.255.255"],
      ["not an address"],
    ];
    for (const [address, ...reaches] of table) {
      expect(reachesOf(address), address).toEqual(reaches);
    }
  });

  it("is judged by the IPv4 address it leads to, however an IPv6 address holds it and is written", () => {
    fc.assert(
      fc.property(
        addresses4,
        fc.constantFrom(...holders),
        fc.boolean(),
        ([a, b, c, d], holder, isUpper) => {
          const own = reachesOf(`${a}.${b}.${c}.${d}`);
          const held = holder([a, b, c, d]);
          expect(reachesOf(isUpper ? held.toUpperCase() : held), held).toEqual(own);
          const whole = {
            reach: "public",
            allowed: parseBaseUrl(publicUrl, ["0.0.0.0/0", "::/0"]).allowed,
          } as const;
          if (own.length < 2) expect(mayReach(held, whole), held).toBe(false);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each([
    ["127.0.0.1", "https://compute.example.com"],
    ["169.254.169.254", "https://compute.example.com"],
    ["169.254.169.254", "http://localhost"],
    ["10.0.0.7", "https://compute.example.com"],
    ["127.0.0.1", "http://compute"],
  ])("is refused when it leads to %s before anything connects to %s", async (address, baseUrl) => {
    await using server = await answering(says(vmRecord));
    const { port } = new URL(server.url);
    await using compute = clientOf(`${baseUrl}:${port}`, {
      lookup: (_, __, callback) => callback(null, [{ address, family: 4 }]),
    });
    for (const call of [compute.vms.get("vm-1"), compute.vms.restart("vm-1")]) {
      expect(await failureOf(call)).toMatchObject({
        kind: "unreachable",
        reason: "forbidden-address",
      });
    }
    expect(server.connections()).toBe(0);
  });

  it.each<[allowPrivate: boolean | readonly string[], address: string, may: boolean]>([
    [true, "10.0.0.7", true],
    [true, "fd00::7", true],
    [true, "127.0.0.1", false],
    [true, "169.254.169.254", false],
    [["10.20.0.0/16", "fd00:1::/32"], "10.20.3.4", true],
    [["10.20.0.0/16", "fd00:1::/32"], "fd00:1::9", true],
    [["10.20.0.0/16", "fd00:1::/32"], "10.21.0.1", false],
    [["10.20.0.0/16"], "93.184.216.34", true],
    [["0.0.0.0/0", "::/0"], "127.0.0.1", false],
    [["0.0.0.0/0", "::/0"], "169.254.169.254", false],
    [["0.0.0.0/0"], "::ffff:10.0.0.7", true],
  ])("may lead, with COMPUTE_ALLOW_PRIVATE=%s, to %s: %s", (allowPrivate, address, may) => {
    const base = parseBaseUrl("https://compute.example.com", allowPrivate);
    expect(mayReach(address, base)).toBe(may);
  });

  it("is refused when only one of its addresses is forbidden", async () => {
    await using compute = clientOf("https://compute.example.com", {
      lookup: (_, __, callback) =>
        callback(null, [
          { address: "93.184.216.34", family: 4 },
          { address: "169.254.169.254", family: 4 },
        ]),
    });
    expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
      reason: "forbidden-address",
    });
  });
});

describe("TLS", () => {
  it("works with a private authority that is named", async () => {
    await using server = await answering(says(vmRecord), pem("localhost"));
    await using compute = clientOf(server.url, { tls: trusting("localhost") });
    expect((await compute.vms.get("vm-1")).name).toBe("web-1");
    expect((await compute.vms.restart("vm-1")).vm?.name).toBe("web-1");
  });

  const bad: [what: string, server: string, ca: string | undefined, version?: "TLSv1.1"][] = [
    ["an authority nobody knows", "localhost", undefined],
    ["the certificate of another host", "other-host", "other-host"],
    ["an expired certificate", "expired", "expired"],
    ["a version below 1.2", "localhost", "localhost", "TLSv1.1"],
  ];

  it.each(bad)("ends before anything is sent with %s", async (_, certificate, ca, version) => {
    await using server = await answering(says(vmRecord), pem(certificate), version);
    await using compute = clientOf(server.url, ca === undefined ? {} : { tls: trusting(ca) });
    expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
      kind: "unreachable",
      reason: "tls",
    });
    expect(await failureOf(compute.vms.get("vm-1"))).toMatchObject({
      kind: "unreachable",
      reason: "tls",
    });
    expect(server.asked).toEqual([]);
  });
});

describe("a redirect", () => {
  it.each([301, 302, 303, 307, 308])(
    "%i to another host is not followed and carries no credential there",
    async (status) => {
      const seen: unknown[] = [];
      await using elsewhere = await answering((request, response) => {
        seen.push(request.headers);
        says(vmRecord)(request, response);
      });
      await using server = await answering((request, response) =>
        response.writeHead(status, { location: `${elsewhere.url}${request.url}` }).end(),
      );
      await using compute = clientOf(server.url);
      expect(await failureOf(compute.vms.restart("vm-1"))).toMatchObject({
        kind: "unclear",
        reason: "redirect",
        status,
      });
      expect(await failureOf(compute.vms.get("vm-1"))).toMatchObject({
        kind: "unexpected",
        reason: "redirect",
        status,
      });
      expect(seen).toEqual([]);
      expect(server.asked).toHaveLength(2);
    },
  );

  it("is about the host asked: the key goes there as a bearer token", async () => {
    const seen: unknown[] = [];
    await using server = await answering((request, response) => {
      seen.push(request.headers.authorization);
      says(vmRecord)(request, response);
    });
    await using compute = clientOf(server.url);
    await compute.vms.get("vm-1");
    expect(seen).toEqual([`Bearer ${key}`]);
  });
});

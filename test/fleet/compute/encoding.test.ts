import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { startSandboxCompute } from "../../../sandbox/compute/start-sandbox-compute.ts";
import { answering, clientOf, failureOf, vmRecord } from "./answering.ts";

const text = JSON.stringify(vmRecord);

/** A client of a service that answers with these bytes in this content encoding. */
async function speaking(bytes: Buffer | string, encoding: string, status = 200) {
  const accepted: (string | undefined)[] = [];
  const server = await answering((request, response) => {
    accepted.push(request.headers["accept-encoding"]);
    response
      .writeHead(status, { "content-type": "application/json", "content-encoding": encoding })
      .end(bytes);
  });
  const compute = clientOf(server.url, { maxResponseBytes: 100_000 });
  return {
    accepted,
    compute,
    server,
    [Symbol.asyncDispose]: async () => {
      await compute.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe("an encoded answer", () => {
  it.each<[encoding: string, bytes: Buffer]>([
    ["gzip", gzipSync(text)],
    ["GZIP", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["br", brotliCompressSync(text)],
    ["gzip, identity", gzipSync(text)],
    ["deflate, gzip", gzipSync(deflateSync(text))],
  ])("is read as %s, though identity was asked for", async (encoding, bytes) => {
    await using service = await speaking(bytes, encoding);
    expect(await service.compute.vms.get("vm-1")).toMatchObject({ name: "web-1" });
    expect(service.accepted).toEqual(["identity"]);
  });

  it.each(["zstd", "compress", "constructor", "gzip, gzip, gzip, gzip"])(
    "is unexpected as %s, which can't be read, and isn't asked for again",
    async (encoding) => {
      await using service = await speaking(text, encoding);
      const error = await failureOf(service.compute.vms.get("vm-1"));
      expect(error).toMatchObject({ kind: "unexpected", reason: "encoding" });
      expect(error.message).toContain("content encoding");
      expect(service.accepted).toHaveLength(1);
    },
  );

  it("is unexpected where it isn't what it says", async () => {
    await using service = await speaking(text, "gzip");
    expect(await failureOf(service.compute.vms.get("vm-1"))).toMatchObject({ reason: "encoding" });
  });

  it("is bounded once it is unpacked", async () => {
    await using service = await speaking(gzipSync(`${text}${" ".repeat(10_000_000)}`), "gzip");
    const error = await failureOf(service.compute.vms.get("vm-1"));
    expect(error).toMatchObject({ kind: "unexpected", reason: "too-large" });
  });

  it("is read again when it is cut off, and leaves a change unclear", async () => {
    const packed = gzipSync(text);
    await using service = await speaking(packed.subarray(0, packed.length - 12), "gzip");
    const error = await failureOf(service.compute.vms.get("vm-1"));
    expect(error).toMatchObject({ kind: "unreachable", reason: "truncated" });
    expect(service.accepted).toHaveLength(4);
    expect(await failureOf(service.compute.vms.restart("vm-1"))).toMatchObject({ kind: "unclear" });
  });

  it("is accepted by its status when it answers a change, and read where it can be", async () => {
    await using packed = await speaking(gzipSync(text), "gzip", 202);
    expect(await packed.compute.vms.restart("vm-1")).toMatchObject({
      status: 202,
      vm: vmRecordRead,
    });
    await using unknown = await speaking("…", "zstd", 202);
    expect(await unknown.compute.vms.restart("vm-1")).toEqual({ status: 202 });
  });

  it("keeps the service's words in a refusal", async () => {
    await using service = await speaking(gzipSync('{"error": "no such VM"}'), "gzip", 404);
    expect(await failureOf(service.compute.vms.get("vm-1"))).toMatchObject({
      kind: "not-found",
      serviceMessage: "no such VM",
    });
  });

  it.each(["gzip", "deflate", "br"])(
    "as %s is what the sandbox sends in that weather",
    async (encoding) => {
      await using sandbox = await startSandboxCompute();
      await using compute = clientOf(sandbox.url, { apiKey: sandbox.apiKey });
      sandbox.weather({ encoding });
      expect((await compute.projects.listAll()).length).toBeGreaterThan(0);
    },
  );
});

const vmRecordRead = { id: "vm-1", projectId: "prj-1", name: "web-1", status: "RUNNING" };

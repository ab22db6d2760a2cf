import * as fc from "fast-check";
import { type Compute, type Endpoint, endpoints } from "../../src/fleet/compute/compute.ts";
import { projectRecord, vmRecord } from "../fleet/compute/answering.ts";
import { anyJson, anyWord } from "./texts.ts";
import type { Kind } from "./value-faults.ts";

/** Stands in every page of HTML: it must not be seen again anywhere. */
export const mark = "MARK-OF-THE-PAGE";
/** Of a record; lists may have more. */
export const maxBytes = 64 * 1024;

export interface Call {
  endpoint: Endpoint;
  gives: Kind;
  call: (compute: Compute) => Promise<unknown>;
}

const specs = { cpu: 2, memory: 4 };
const calls: readonly Call[] = [
  {
    endpoint: endpoints.listProjects,
    gives: "projects",
    call: ({ projects }) => projects.listAll(),
  },
  {
    endpoint: endpoints.createProject,
    gives: "accepted",
    call: ({ projects }) => projects.create({ name: "new", type: "TEE_VM", region: "eu" }),
  },
  {
    endpoint: endpoints.getProject,
    gives: "project",
    call: ({ projects }) => projects.get("prj-1"),
  },
  {
    endpoint: endpoints.updateProject,
    gives: "accepted",
    call: ({ projects }) => projects.update("prj-1", { name: "x" }),
  },
  {
    endpoint: endpoints.deleteProject,
    gives: "accepted",
    call: ({ projects }) => projects.delete("prj-1"),
  },
  { endpoint: endpoints.listVms, gives: "vms", call: ({ projects }) => projects.vms("prj-1") },
  { endpoint: endpoints.getVm, gives: "vm", call: ({ vms }) => vms.get("vm-1") },
  { endpoint: endpoints.startVm, gives: "accepted", call: ({ vms }) => vms.start("vm-1") },
  { endpoint: endpoints.stopVm, gives: "accepted", call: ({ vms }) => vms.stop("vm-1") },
  { endpoint: endpoints.restartVm, gives: "accepted", call: ({ vms }) => vms.restart("vm-1") },
  { endpoint: endpoints.resizeVm, gives: "accepted", call: ({ vms }) => vms.resize("vm-1", specs) },
  { endpoint: endpoints.vmMetrics, gives: "metrics", call: ({ vms }) => vms.metrics("vm-1", "1h") },
  {
    endpoint: endpoints.vmAttestation,
    gives: "attestation",
    call: ({ vms }) => vms.attestation("vm-1"),
  },
  { endpoint: endpoints.openConsole, gives: "console", call: ({ vms }) => vms.console("vm-1") },
  {
    endpoint: endpoints.takeSnapshot,
    gives: "accepted",
    call: ({ vms }) => vms.snapshot("vm-1", "nightly"),
  },
  {
    endpoint: endpoints.restoreVm,
    gives: "accepted",
    call: ({ vms }) => vms.restore("vm-1", "snap-1"),
  },
];

type Body =
  | { is: "json" | "text" | "html" | "empty"; text: string }
  /** JSON that ends in the middle, its last byte sent all the same. */
  | { is: "broken-off"; text: string }
  /** Fewer bytes than the header promised, then the connection is cut. */
  | { is: "cut"; text: string };

export interface Answer {
  call: Call;
  status: number;
  type: string;
  body: Body;
}

const json = (text: string): Body => ({ is: "json", text });
const wrap = fc.constantFrom(
  "",
  "vm",
  "project",
  "data",
  "result",
  "snapshot",
  "vms",
  "projects",
  "items",
  "__proto__",
);

/** A right record with fields taken away, changed, or added. */
const nearlyRight: fc.Arbitrary<Body> = fc
  .tuple(
    fc.constantFrom<Record<string, unknown>>(
      vmRecord,
      projectRecord,
      { url: "wss://console.example/x?token=t", expires_at: "2026-11-20T10:00:00Z" },
      { cpu_usage: [{ timestamp: "t", value: 1 }], memory_usage: [], disk_usage: 3 },
      { report: "cmVwb3J0", measurement: "ab", verified: true, platform: { vendor: "x" } },
      { snapshot_id: "snap-1" },
      { id: "task-1", type: "task", status: "PENDING" },
    ),
    fc.array(
      fc.tuple(
        fc.constantFrom(
          "id",
          "name",
          "status",
          "type",
          "project_id",
          "specs",
          "url",
          "cpu_usage",
          "attestation",
          "snapshot_id",
          "total",
          "page",
          "per_page",
          "__proto__",
          "constructor",
        ),
        fc.oneof(
          fc.oneof(anyJson, anyWord).map((value) => JSON.stringify(value)),
          fc.constantFrom(
            "1e999",
            '""',
            "-0",
            "9007199254740993",
            '"wss:x"',
            '"javascript:wss:"',
            "[[]]",
          ),
        ),
      ),
      { maxLength: 3 },
    ),
    wrap,
    fc.boolean(),
  )
  .map(([record, edits, key_, isList]): Body => {
    const right = Object.entries(record).map(([name, value]) => [name, JSON.stringify(value)]);
    // Of two fields of one name the last one counts, as with every reader of JSON
    const fields = [...right, ...edits].map(([name, value]) => `${JSON.stringify(name)}:${value}`);
    const one = `{${fields.join(",")}}`;
    const inner = isList ? `[${one}]` : one;
    return json(key_ === "" ? inner : `{${JSON.stringify(key_)}:${inner}}`);
  });

const anyBody: fc.Arbitrary<Body> = fc.oneof(
  { weight: 8, arbitrary: nearlyRight },
  { weight: 4, arbitrary: anyJson.map((value) => json(JSON.stringify(value))) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom("[", '{"a":', '{"error":', '{"data":'),
        fc.integer({ min: 1, max: 8000 }),
      )
      .map(([open, deep]): Body =>
        json(open.repeat(deep) + "1" + (open === "[" ? "]" : "}").repeat(deep)),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom("<html>", "<!DOCTYPE html><html>", "\n <div>").map((open): Body => ({
      is: "html",
      text: `${open}<title>502 ${mark}</title><script>alert(1)</script>`,
    })),
  },
  { weight: 2, arbitrary: anyWord.map((text): Body => ({ is: "text", text: `ok ${text}` })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("", " ", "\n").map((text): Body => ({ is: "empty", text })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom('{"vm": {"id": "vm-1", "sta', '["a', '{"a":{"b":1}', '"abc')
      .map((text): Body => ({ is: "broken-off", text })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(JSON.stringify(vmRecord), "{}", "")
      .map((text): Body => ({ is: "cut", text })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("a", "[", '{"name":"', "<p>")
      .map((piece): Body => ({ is: "text", text: piece.repeat(1_100_000 / piece.length) })),
  },
);

export const anyAnswer: fc.Arbitrary<Answer> = fc
  .tuple(
    fc.constantFrom(...calls),
    fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(200, 201, 202, 204) },
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          301,
          307,
          400,
          401,
          403,
          404,
          405,
          408,
          409,
          422,
          425,
          429,
          500,
          502,
          503,
          504,
        ),
      },
      { weight: 2, arbitrary: fc.integer({ min: 200, max: 999 }) },
    ),
    fc.constantFrom(
      "application/json",
      "application/json; charset=utf-8",
      "application/problem+json",
      "text/html",
      "text/plain",
      "",
      "\u00e9",
    ),
    anyBody,
  )
  .map(([call, status, type, body]): Answer => {
    // These answers have no body, whatever somebody writes into them
    const isBare = status === 204 || status === 304;
    // What says that it is something else than JSON was not cut in the middle of JSON
    const saysJson = type === "" || /json/.test(type);
    if (isBare) return { call, status, type, body: { is: "empty", text: "" } };
    return {
      call,
      status,
      type,
      body: body.is === "broken-off" && !saysJson ? { is: "text", text: body.text } : body,
    };
  });

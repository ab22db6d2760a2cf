import { fromJsonSchema } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commands } from "../../../src/features/index.ts";
import type { TestWorld } from "../../support/start-world.ts";
import { addressOf, readAs, startApiWorld, token } from "../proposals/asking.ts";

type Json = Record<string, unknown>;
interface Operation {
  operationId: string;
  parameters: { name: string; in: string; required?: boolean; schema: Json }[];
  responses: Record<string, { content: Record<string, { schema: Json }> }>;
}
type Paths = Record<string, { get?: Operation; post?: Operation }>;

const problemsIn = async (schema: Json, value: unknown) => {
  const judged = await fromJsonSchema(schema)["~standard"].validate(value);
  return judged.issues;
};

describe("the description of the API", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await startApiWorld();
  });
  afterAll(() => world.close());

  it("is OpenAPI 3.1, for everybody, and its reads are those of the commands", async () => {
    const { status, type, body } = await readAs(world, undefined, "/v1/openapi.json");
    expect({ status, type }).toEqual({ status: 200, type: "application/json" });
    expect(body).toMatchObject({
      openapi: "3.1.0",
      info: { title: "Gatehouse" },
      security: [{ token: [] }],
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    });
    const withData = commands.flatMap((one) =>
      one.kind === "read" && one.data ? [one.data.at] : [],
    );
    const paths = body["paths"] as Paths;
    expect(Object.keys(paths)).toEqual([...withData, "/v1/proposals", "/v1/requests/{id}"]);
    expect(paths["/v1/vms"]?.get?.parameters.map(({ name }) => name)).toEqual([
      "project",
      "status",
      "sort",
      "page",
    ]);
    expect(paths["/v1/vms/{vm}/metrics"]?.get?.parameters).toMatchObject([
      { name: "vm", in: "path", required: true, schema: { type: "string", minLength: 1 } },
      { name: "period", in: "query", schema: { type: "string", default: "1h" } },
    ]);
    // No internal property of the parser appears.
    expect(JSON.stringify(body)).not.toMatch(/isFlag|isSeveral|isFile|\$schema|"target"/);
  });

  it("describes exactly what each read and each problem answers", async () => {
    await world.olivia.types("ops", "/vm snapshot db-1 nightly");
    await world.ended("vm snapshot");
    const { body } = await readAs(world, undefined, "/v1/openapi.json");
    const paths = body["paths"] as Paths;
    const reads = Object.entries(paths).flatMap(([path, { get }]) =>
      get && get.operationId !== "get_request" ? [{ path, get }] : [],
    );
    expect(reads).toHaveLength(7);
    for (const { path, get } of reads) {
      const asked = path.replace("{vm}", "db-1").replace("{project}", "payments");
      const answer = await readAs(world, token, asked);
      expect(answer.status, path).toBe(200);
      const schema = get.responses["200"]?.content["application/json"]?.schema ?? {};
      expect(await problemsIn(schema, answer.body), path).toBeUndefined();
      // The schema must be strict enough to refuse this.
      expect(await problemsIn(schema, { ...answer.body, readAs: 1 }), path).toBeDefined();
      for (const { name, in: place, schema: its } of get.parameters) {
        const query = new URLSearchParams({ [name]: its["enum"] ? "no-such" : "" });
        if (place !== "query" || name === "project" || (!its["enum"] && !its["pattern"])) continue;
        const refused = await readAs(world, token, `${asked}?${query}`);
        expect(refused, `${path} ${name}`).toMatchObject({ status: 422, body: { field: name } });
      }
    }
    const { problem } = (body["components"] as { responses: Operation["responses"] }).responses;
    const schema = problem?.content["application/problem+json"]?.schema ?? {};
    for (const [bearer, path] of [
      [undefined, "/v1/vms"],
      [token, "/v1/vms/nothing"],
      [token, "/v1/vms?page=x"],
    ] as const)
      expect(await problemsIn(schema, (await readAs(world, bearer, path)).body)).toBeUndefined();
    const posted = await fetch(addressOf(world, "/v1/vms"), { method: "POST" });
    expect(posted.status).toBe(405);
  });
});

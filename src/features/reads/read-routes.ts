import type { Behind } from "../../api/api-context.ts";
import { serviceOf } from "../../api/callers.ts";
import { readFor, wordsOf } from "../../api/read-for.ts";
import { withJson } from "../../api/schemas.ts";
import { type Call, ApiProblem, type Route } from "../../api/server.ts";
import { ComputeError } from "../../fleet/compute/compute.ts";
import { UserError } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { Input } from "../../registry/invocation.ts";
import { PickOne } from "../../core/submit/resolve-targets.ts";
import { describeApi } from "./describe-api.ts";

/**
 * The routes of reads, such as `GET /v1/vms`, each at the address that its command gives, and the
 * route of their description.
 */
export function readRoutes(behind: Behind): readonly Route[] {
  const { commands } = behind.gatewayNow();
  const description = describeApi(commands, behind.paths);
  const route = { name: "reads", methods: ["GET"] };
  const describe = async () => ({ status: 200, body: description });
  return [
    { ...route, path: /^\/v1\/openapi\.json$/, handle: describe },
    ...withJson(commands).map(({ command, data: { at } }): Route => {
      const path = new RegExp(`^${at.replace(/\{\w+\}/, "([^/]+)")}$`);
      const [, key] = /\{(\w+)\}/.exec(at) ?? [];
      return {
        ...route,
        path,
        async handle(call, named) {
          const caller = await serviceOf(call, named, behind.gatewayNow());
          const input = { ...Object.fromEntries(call.query), ...inPath(call, path, key) };
          try {
            const body = await (await readFor(caller, command, input, behind)).data();
            return { status: 200, body };
          } catch (error) {
            throw asProblem(error, behind.log, key);
          }
        },
      };
    }),
  ];
}

function inPath({ path }: Call, pattern: RegExp, key: string | undefined): Input {
  const [, words] = pattern.exec(path) ?? [];
  if (key === undefined || words === undefined) return {};
  try {
    return { [key]: decodeURIComponent(words) };
  } catch {
    throw new ApiProblem(400, "The address is not valid.", "Encode the name in it.", {
      field: key,
    });
  }
}

/**
 * Turns an error of a read into a problem for HTTP. When its arguments are valid, a read only
 * refuses what doesn't exist for its caller.
 */
function asProblem(error: unknown, log: Log, field?: string): unknown {
  if (error instanceof PickOne)
    return new ApiProblem(error.isAmbiguous ? 409 : 404, ...wordsOf(error, log), { field });
  if (error instanceof UserError) return new ApiProblem(404, error.message, undefined, { field });
  if (!(error instanceof ComputeError)) return error;
  const isTheirs = error.status === 400 || error.status === 422;
  const status = error.kind === "not-found" ? 404 : isTheirs ? 422 : 502;
  return new ApiProblem(status, ...wordsOf(error, log), status === 502 ? {} : { field });
}

import { expect, it } from "vitest";
import { ComputeError } from "../../src/fleet/compute/compute.ts";
import { createLog } from "../../src/log/log.ts";
import { errorReply } from "../../src/slack/error-reply.ts";

const log = createLog({ level: "error", write: () => undefined });
const open = "POST /v1/vms/{vm_id}/console";
const read = "GET /v1/vms/{vm_id}";

it.each([
  ["an unclear call", new ComputeError("unclear", open, "no whole answer")],
  ["an unreadable answer to a change", new ComputeError("unexpected", open, "no URL")],
  ["a bug", new Error("a bug")],
])("never denies what may have happened: %s", (_, error) => {
  const { text } = errorReply(error, log);
  expect(text).toMatch(/may have happened|Check whether/);
  expect(text).not.toMatch(/refused|Nothing was/);
});

it("calls a slow Redis slow: neither a bug nor nothing, because a command may have arrived", () => {
  const { text } = errorReply(new Error("Command timed out"), log);
  expect(text).toMatch(/^Redis answers slowly, so it isn't known whether this was done\./);
  expect(text).not.toMatch(/went wrong|[Nn]othing/);
});

it("an error's reply says that an unreadable answer to a read changed nothing", () => {
  const { text } = errorReply(new ComputeError("unexpected", read, "no status"), log);
  expect(text).toMatch(/Nothing was changed/);
});

it.each([
  ["timeout", /^The compute service answers too slowly or not at all right now\./],
  ["connect", /^The compute service can't be reached right now\./],
] as const)(
  "an error's reply tells a service that is too slow from one out of reach: %s",
  (reason, words) => {
    const error = new ComputeError("unreachable", read, "nothing came", { reason });
    expect(errorReply(error, log).text).toMatch(words);
  },
);

import { complaintsAbout } from "../../blocks/check.ts";
import { fieldsOf } from "../../fields.ts";
import { picturesOf } from "../../state/files.ts";
import { complaintsAboutView } from "../../state/views.ts";
import { type Call, type Method, Refused } from "./method.ts";

/**
 * https://docs.slack.dev/reference/methods/blocks.validate: exactly one of `blocks`, `message`, and `view`, by the rules of what is
 * posted, except for what all blocks weigh together. It needs no token.
 */
export const blocks: Record<string, Method> = {
  "blocks.validate": {
    scopes: [],
    token: "none",
    run: (call) => {
      const given = ["blocks", "message", "view"].filter((name) => call.has(name));
      if (given.length !== 1) throw new Refused("invalid_arguments");
      const [kind = ""] = given;
      const complaints = complaintsIn(call, kind);
      if (complaints.length > 0)
        throw new Refused(`invalid_${kind}`, { errors: complaints.map(errorOf) });
      return {};
    },
  },
};

function complaintsIn(call: Call, kind: string): string[] {
  const { workspace } = call;
  const value = call.json(kind, "invalid_arguments");
  if (kind === "view")
    return complaintsAboutView(
      workspace,
      fieldsOf(value),
      fieldsOf(value)["type"] === "home" ? "home" : "modal",
    );
  const list = kind === "message" ? (fieldsOf(value)["blocks"] ?? []) : value;
  const at = kind === "message" ? "/blocks" : "";
  return complaintsAbout(list, "message", at, picturesOf(workspace));
}

function errorOf(complaint: string) {
  const [, message = complaint, pointer = ""] =
    /^(.*) \[json-pointer:(.*)\]$/s.exec(complaint) ?? [];
  return { pointer, code: "failed_constraint", message };
}

import * as z from "zod";
import { sentence } from "../../messages/message.ts";
import { md, name } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";

export const freeze = defineCommand({
  kind: "read",
  name: "gatehouse freeze",
  summary: "Stop every change that has not been sent yet",
  example: "/gatehouse freeze incident 4711, storage is failing",
  class: "administer",
  args: z.object({
    reason: z
      .string()
      .max(300)
      .optional()
      .meta({ rest: true, description: "said on every refusal while it lasts" }),
  }),
  async answer({ reason = "" }, { control }) {
    const isNew = await control.freeze(reason);
    return isNew
      ? sentence(
          md`🧊 All changes are frozen. Reading goes on. ${name("/gatehouse thaw")} ends it.`,
        )
      : sentence(
          md`🧊 Changes are frozen already; the first reason stands. ${name("/gatehouse status")} shows it.`,
        );
  },
});

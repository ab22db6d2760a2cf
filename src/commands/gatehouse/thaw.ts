import * as z from "zod";
import { sentence } from "../../messages/message.ts";
import { md } from "../../messages/text.ts";
import { defineCommand } from "../../registry/define.ts";

export const thaw = defineCommand({
  kind: "read",
  name: "gatehouse thaw",
  summary: "Allow changes again",
  example: "/gatehouse thaw",
  class: "administer",
  args: z.object({}),
  async answer(_args, { control }) {
    return (await control.thaw())
      ? sentence(
          md`Changes are allowed again. What was asked during the freeze is not done by itself: ask again.`,
        )
      : sentence(md`Nothing was frozen.`);
  },
});

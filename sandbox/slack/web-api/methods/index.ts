import { blocks } from "./blocks.ts";
import { users } from "./users.ts";
import { chat } from "./chat.ts";
import { conversations } from "./conversations.ts";
import { files } from "./files.ts";
import type { Method } from "./method.ts";
import { views } from "./views.ts";

/** Every Web API method the sandbox knows; any other is `unknown_method`. */
export const methods: ReadonlyMap<string, Method> = new Map(
  Object.entries({
    ...blocks,
    ...chat,
    ...conversations,
    ...files,
    ...users,
    ...views,
  }),
);

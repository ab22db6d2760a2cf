import type { Message } from "../messages/blocks.ts";
import type { Target } from "../registry/define.ts";
import { defineService } from "../registry/service-key.ts";
import type { ReadContext } from "./context.ts";

/** Says in one message what is wrong with a VM, and since when, to the reader of this context. */
export type Diagnose = (vm: Target, reading: ReadContext) => Promise<Message>;

/** Without a feature that provides it, a VM has no *Why?*, only the history of its requests. */
export const diagnosis = defineService<Diagnose>("diagnosis");

import { type Fields, listOf, textOf } from "../../fields.ts";
import { announceFile, fileObject } from "../../state/files.ts";
import { postMessage } from "../../state/messages.ts";
import type { Channel, StoredFile } from "../../state/records.ts";
import { messageBody } from "./message-body.ts";
import { type Call, type Method, Refused } from "./method.ts";

const write = { scopes: ["files:write"], token: "bot" } as const;

export const files: Record<string, Method> = {
  "files.getUploadURLExternal": {
    ...write,
    run: (call) => {
      call.required("filename", "length");
      const size = Number(call.text("length"));
      if (!Number.isInteger(size) || size <= 0) throw new Refused("invalid_arguments");
      const file = announceFile(call.workspace, {
        name: call.text("filename"),
        size,
        altText: call.text("alt_txt") || call.text("alt_text"),
        userId: call.bot.id,
      });
      return { upload_url: `${call.workspace.url}/upload/v1/${file.uploadKey}`, file_id: file.id };
    },
  },

  "files.completeUploadExternal": {
    ...write,
    run: (call) => {
      const wanted = listOf(call.list("files", "invalid_arguments"));
      if (wanted.length === 0) call.required("files");
      const channels = sharedWith(call);
      const completed = wanted.map((entry) => {
        const file = call.workspace.files.get(textOf(entry["id"]));
        if (!file?.bytes) throw new Refused("file_not_found");
        return { file, title: textOf(entry["title"]) };
      });
      for (const { file, title } of completed) {
        file.title = title || file.name;
        file.completedAt ??= call.workspace.now();
      }
      for (const channel of channels)
        share(
          call,
          channel,
          completed.map(({ file }) => file),
        );
      call.workspace.changed();
      return { files: completed.map(({ file }) => fileObject(call.workspace, file.id)) };
    },
  },

  "files.info": {
    scopes: ["files:read"],
    token: "bot",
    run: (call) => ({
      file: fileObject(call.workspace, existing(call).id),
      comments: [],
      response_metadata: { next_cursor: "" },
    }),
  },

  "files.delete": {
    ...write,
    run: (call) => {
      const file = existing(call);
      if (file.userId !== call.bot.id) throw new Refused("cant_delete_file");
      call.workspace.files.delete(file.id);
      call.workspace.changed();
      return {};
    },
  },
};

function existing(call: Call): StoredFile {
  call.required("file");
  const file = call.workspace.files.get(call.text("file"));
  if (file?.completedAt === undefined) throw new Refused("file_not_found");
  return file;
}

function sharedWith(call: Call): Channel[] {
  const ids = [call.text("channel_id"), ...call.text("channels").split(",")].filter(Boolean);
  return ids.map((id) => {
    const channel = call.workspace.channels.get(id);
    if (!channel) throw new Refused("channel_not_found");
    if (!channel.memberIds.has(call.bot.id))
      throw new Refused(channel.kind === "public" ? "not_in_channel" : "channel_not_found");
    if (channel.archived) throw new Refused("is_archived");
    return channel;
  });
}

/** Posts the message that carries the files. `initial_comment` wins over `blocks`. */
function share(call: Call, channel: Channel, shared: readonly StoredFile[]): void {
  const comment = call.text("initial_comment");
  const body: { text: string; blocks: Fields[] } =
    comment !== "" || !call.has("blocks") ? { text: comment, blocks: [] } : messageBody(call);
  const message = postMessage(call.workspace, {
    channelId: channel.id,
    userId: call.bot.id,
    botId: call.workspace.app.botId,
    text: body.text,
    blocks: body.blocks,
    fileIds: shared.map(({ id }) => id),
    ...(call.has("thread_ts") ? { threadTs: call.text("thread_ts") } : {}),
  });
  for (const file of shared) file.shares.push({ channelId: channel.id, ts: message.ts });
}

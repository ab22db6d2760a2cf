/**
 * What has been typed into text inputs and not been submitted: by the id of the view, then by block id. A view that the
 * app updates keeps what was typed as long as its input keeps its block id, as in Slack.
 */
const drafts = new Map<string, Map<string, string>>();

export function keepDraft(viewId: string, blockId: string, text: string): void {
  const kept = drafts.get(viewId) ?? new Map<string, string>();
  drafts.set(viewId, kept.set(blockId, text));
}

export function draftOf(viewId: string, blockId: string): string | undefined {
  return drafts.get(viewId)?.get(blockId);
}

export function forgetDrafts(viewId: string): void {
  drafts.delete(viewId);
}

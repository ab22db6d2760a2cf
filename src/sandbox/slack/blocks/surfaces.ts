export type Surface = "message" | "modal" | "home";

/** Where each block may stand; what isn't named may stand anywhere. */
export const surfaces: Partial<Record<string, readonly Surface[]>> = {
  alert: ["modal"],
  carousel: ["message", "home"],
  container: ["message", "home"],
  context_actions: ["message"],
  data_table: ["message", "home"],
  data_visualization: ["message"],
  file: ["message"],
  markdown: ["message"],
  plan: ["message"],
  table: ["message", "home"],
  task_card: ["message"],
};

export const modalOnlyInputs: readonly string[] = [
  "email_text_input",
  "url_text_input",
  "number_input",
  "file_input",
];

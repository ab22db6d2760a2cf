/** The variables that a process can't do without. */
export const complete = {
  SLACK_BOT_TOKEN: "xoxb-1",
  SLACK_APP_TOKEN: "xapp-1",
  COMPUTE_API_URL: "https://compute.example",
  COMPUTE_API_KEY: "key-of-compute",
  REDIS_URL: "redis://localhost:6379",
};

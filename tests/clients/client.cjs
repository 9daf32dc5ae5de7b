// client.cjs WHAT PROMPT: one small tool loop with a JavaScript SDK, which has its own environment for its base URL.
//
// NODE_PATH names the packages: in ~/.cache/agent-clients/npm/js (CLIENTS_DIR),
//     npm i openai @anthropic-ai/sdk ai @ai-sdk/openai @ai-sdk/anthropic @openai/agents zod
const [what, prompt] = process.argv.slice(2);
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const described = { name: "get_weather", description: "Get weather" };
const weather = ({ city }) => `sunny in ${city}`;

async function openai() {
  const OpenAI = require("openai");
  const client = new OpenAI();
  const messages = [{ role: "user", content: prompt }];
  const asked = { model: "gpt-x", messages, tools: [{ type: "function", function: { ...described, parameters: schema } }] };
  const { message } = (await client.chat.completions.create(asked)).choices[0];
  messages.push(message);
  for (const call of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: weather(JSON.parse(call.function.arguments)) });
  }
  let text = "";
  for await (const event of await client.chat.completions.create({ ...asked, stream: true })) {
    text += event.choices[0]?.delta?.content ?? "";
  }
  return text;
}

async function anthropic() {
  const Anthropic = require("@anthropic-ai/sdk");
  const client = new Anthropic();
  const messages = [{ role: "user", content: prompt }];
  const asked = { model: "claude-x", max_tokens: 99, messages, tools: [{ ...described, input_schema: schema }] };
  const { content } = await client.messages.stream(asked).finalMessage();
  const calls = content.filter((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content });
  messages.push({
    role: "user",
    content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: weather(call.input) })),
  });
  return (await client.messages.create(asked)).content[0].text;
}

async function vercel(model) {
  const { streamText, tool, stepCountIs } = require("ai");
  const inputSchema = require("zod").z.object({ city: require("zod").z.string() });
  const tools = { get_weather: tool({ ...described, inputSchema, execute: weather }) };
  let text = "";
  for await (const part of streamText({ model, prompt, tools, stopWhen: stepCountIs(4) }).textStream) text += part;
  return text;
}

async function agents() {
  const { Agent, run, tool, setTracingDisabled } = require("@openai/agents");
  setTracingDisabled(true);
  const parameters = require("zod").z.object({ city: require("zod").z.string() });
  const agent = new Agent({ name: "A", instructions: "You help.", tools: [tool({ ...described, parameters, execute: weather })] });
  const running = await run(agent, prompt, { stream: true });
  await running.completed;
  return running.finalOutput;
}

const loops = {
  openai,
  anthropic,
  agents,
  "ai-chat": () => vercel(require("@ai-sdk/openai").openai.chat("gpt-x")),
  "ai-responses": () => vercel(require("@ai-sdk/openai").openai("gpt-5")),
  "ai-messages": () => vercel(require("@ai-sdk/anthropic").anthropic("claude-x")),
};
loops[what]().then(console.log);

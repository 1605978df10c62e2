// The reference's storage and agent, spoken to in lines of JSON: {id, op, args} in, {id, ok} or {id, error} out.
import { createInterface } from 'node:readline';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { PostgresStore } from '@mastra/pg';
import { z } from 'zod';

console.log = console.warn = console.info = console.debug = (...words) => console.error(...words); // stdout is for answers
const stores = new Map();

async function opened(url) {
  if (!stores.has(url)) {
    const storage = url.startsWith('file:')
      ? new LibSQLStore({ id: 'interop', url })
      : new PostgresStore({ id: 'interop', connectionString: url, max: 8 });
    await storage.init();
    stores.set(url, storage);
  }
  return stores.get(url);
}

// a model that gives the calls it was told, and keeps the prompts it got
function scripted(calls) {
  const prompts = [];
  return {
    specificationVersion: 'v2', provider: 'scripted', modelId: 'scripted', supportedUrls: { '*/*': [/./] }, prompts,
    async doStream({ prompt }) {
      prompts.push(prompt);
      const parts = calls[prompts.length - 1];
      if (!parts) throw new Error('the script has no call ' + prompts.length);
      const last = parts.some(part => part.type === 'tool-call') ? 'tool-calls' : 'stop';
      const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
      return { stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', finishReason: last, usage }]) };
    },
  };
}

function tools(results) {
  const made = Object.entries(results ?? {}).map(([name, { result, data }]) => [name, createTool({
    id: name, description: name, inputSchema: z.object({}).passthrough(),
    execute: async (_, context) => {
      for (const chunk of data ?? []) await context.writer.custom(chunk);
      return result;
    },
  })]);
  return Object.fromEntries(made);
}

const ops = {
  // one call of an agent with memory, to its end
  async turn({ url, thread, resource, input, calls, tools: results, options }) {
    const model = scripted(calls);
    const memory = new Memory({ storage: await opened(url), options: { lastMessages: 40, ...options } });
    const agent = new Agent({ id: 'interop', name: 'interop', instructions: 'Be brief.', model, tools: tools(results), memory });
    const stream = await agent.stream(input, { memory: { thread, resource } });
    for await (const chunk of stream.fullStream) if (chunk.type === 'error') throw new Error(JSON.stringify(chunk.payload));
    return { text: await stream.text, prompts: model.prompts };
  },
  async messages({ url, thread, resource, last }) {
    const memory = await (await opened(url)).getStore('memory');
    const page = last ? { perPage: last, page: 0, orderBy: { field: 'createdAt', direction: 'DESC' } } : { perPage: false };
    return (await memory.listMessages({ threadId: thread, resourceId: resource, ...page })).messages;
  },
  async save({ url, messages }) {
    const memory = await (await opened(url)).getStore('memory');
    return memory.saveMessages({ messages: messages.map(message => ({ ...message, createdAt: new Date(message.createdAt) })) });
  },
  async thread({ url, thread, resource }) {
    return (await (await opened(url)).getStore('memory')).getThreadById({ threadId: thread, resourceId: resource });
  },
  async threads({ url, resource }) {
    return (await (await opened(url)).getStore('memory')).listThreads({ filter: { resourceId: resource } });
  },
  async create({ url, thread, resource, title, metadata }) {
    const memory = await (await opened(url)).getStore('memory');
    const now = new Date();
    return memory.saveThread({ thread: { id: thread, resourceId: resource, title: title ?? '', metadata, createdAt: now, updatedAt: now } });
  },
  async rename({ url, thread, title, metadata }) {
    return (await (await opened(url)).getStore('memory')).updateThread({ id: thread, title, metadata });
  },
  async resource({ url, resource }) {
    return (await (await opened(url)).getStore('memory')).getResourceById({ resourceId: resource });
  },
  async remember({ url, thread, resource, text, scope }) {
    const memory = new Memory({ storage: await opened(url), options: { workingMemory: { enabled: true, scope } } });
    await memory.updateWorkingMemory({ threadId: thread, resourceId: resource, workingMemory: text });
  },
  async remembered({ url, thread, resource, scope }) {
    const memory = new Memory({ storage: await opened(url), options: { workingMemory: { enabled: true, scope } } });
    return memory.getWorkingMemory({ threadId: thread, resourceId: resource });
  },
  // so many threads at once, each turn: read the last messages, save question and answer; seconds
  async pace({ url, threads, turns, last, texts }) {
    const memory = await (await opened(url)).getStore('memory');
    const row = (threadId, role, n) => ({
      id: `${threadId}-${role}-${n}`, threadId, resourceId: 'pace', role, createdAt: new Date(),
      content: { format: 2, parts: [{ type: 'text', text: texts[role] }] },
    });
    const talk = async thread => {
      const now = new Date();
      await memory.saveThread({ thread: { id: thread, resourceId: 'pace', title: '', createdAt: now, updatedAt: now } });
      for (let n = 0; n < turns; n++) {
        await memory.listMessages({ threadId: thread, resourceId: 'pace', perPage: last, page: 0, orderBy: { field: 'createdAt', direction: 'DESC' } });
        await memory.saveMessages({ messages: [row(thread, 'user', n), row(thread, 'assistant', n)] });
      }
    };
    const names = Array.from({ length: threads }, (_, n) => `pace-${Date.now()}-${n}`);
    const started = performance.now();
    await Promise.all(names.map(talk));
    const seconds = (performance.now() - started) / 1000;
    let stored = 0;
    for (const name of names) stored += (await memory.listMessages({ threadId: name, perPage: false })).total;
    if (stored !== threads * turns * 2) throw new Error(`${stored} messages were stored`);
    return seconds;
  },
  async close({ url }) {
    const storage = stores.get(url);
    stores.delete(url);
    await storage?.close?.();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { op, args } = JSON.parse(line);
  let answer;
  try {
    answer = { ok: (await ops[op](args)) ?? null };
  } catch (error) {
    answer = { error: String(error?.stack ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
process.exit(0);

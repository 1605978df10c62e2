// Time per chunk of the reference: N text deltas through k async pass-through output processors, read to the end.
// Usage: node reference.mjs N K REPEATS   (from a folder where @mastra/core is installed)
import { Agent } from '@mastra/core/agent'

const [n, k, repeats] = process.argv.slice(2).map(Number)

const model = {
  specificationVersion: 'v2',
  provider: 'bench',
  modelId: 'bench',
  supportedUrls: {},
  async doGenerate() {
    throw new Error('streams only')
  },
  async doStream() {
    let i = -1
    const stream = new ReadableStream({
      pull(controller) {
        if (i === -1) controller.enqueue({ type: 'stream-start', warnings: [] })
        else if (i === 0) controller.enqueue({ type: 'text-start', id: 't' })
        else if (i <= n) controller.enqueue({ type: 'text-delta', id: 't', delta: 'hello' })
        else if (i === n + 1) controller.enqueue({ type: 'text-end', id: 't' })
        else {
          const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
          controller.enqueue({ type: 'finish', finishReason: 'stop', usage })
          controller.close()
        }
        i += 1
      },
    })
    return { stream }
  },
}

const outputProcessors = Array.from({ length: k }, (_, i) => ({
  id: `p${i}`,
  async processOutputStream({ part }) {
    return part
  },
}))

const agent = new Agent({ id: 'a', name: 'a', instructions: 'x', model, outputProcessors })

async function once() {
  const started = process.hrtime.bigint()
  const output = await agent.stream('hi')
  let seen = 0
  for await (const chunk of output.fullStream) seen += chunk.type === 'text-delta'
  if (seen !== n) throw new Error(`saw ${seen} deltas of ${n}`)
  return Number(process.hrtime.bigint() - started) / n
}

await once()
const times = []
for (let i = 0; i < repeats; i++) times.push(await once())
console.log(JSON.stringify(times))

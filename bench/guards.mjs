// Texts through the reference's regex filter, in the pieces they are given in.
// Usage: node guards.mjs TASK.json   (from a folder where @mastra/core is installed)
// TASK: {rules: [{name, pattern, replacement}], cuts: [[piece]], timed: [piece], turns}
// Prints {sent: [[piece]], bare: [seconds], guarded: [seconds]}.
import { readFileSync } from 'node:fs'
import { Agent } from '@mastra/core/agent'
import { RegexFilterProcessor } from '@mastra/core/processors'

const task = JSON.parse(readFileSync(process.argv[2], 'utf8'))

const model = pieces => ({
  specificationVersion: 'v2',
  provider: 'bench',
  modelId: 'bench',
  supportedUrls: {},
  async doGenerate() {
    throw new Error('streams only')
  },
  async doStream() {
    let i = -2
    const stream = new ReadableStream({
      pull(controller) {
        if (i === -2) controller.enqueue({ type: 'stream-start', warnings: [] })
        else if (i === -1) controller.enqueue({ type: 'text-start', id: 't' })
        else if (i < pieces.length) controller.enqueue({ type: 'text-delta', id: 't', delta: pieces[i] })
        else if (i === pieces.length) controller.enqueue({ type: 'text-end', id: 't' })
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
})

async function sentOf(pieces, filtered) {
  const rules = task.rules.map(rule => ({ ...rule, pattern: new RegExp(rule.pattern, 'g') }))
  const outputProcessors = filtered ? [new RegexFilterProcessor({ rules, strategy: 'redact', phase: 'output' })] : []
  const agent = new Agent({ id: 'a', name: 'a', instructions: 'x', model: model(pieces), outputProcessors })
  const started = process.hrtime.bigint()
  const output = await agent.stream('hi')
  const sent = []
  for await (const chunk of output.fullStream) if (chunk.type === 'text-delta') sent.push(chunk.payload.text)
  return [sent, Number(process.hrtime.bigint() - started) / 1e9]
}

const sent = []
for (const pieces of task.cuts) sent.push((await sentOf(pieces, true))[0])
const bare = []
const guarded = []
for (let turn = 0; turn < task.turns; turn++) {
  bare.push((await sentOf(task.timed, false))[1])
  guarded.push((await sentOf(task.timed, true))[1])
}
console.log(JSON.stringify({ sent, bare, guarded }))

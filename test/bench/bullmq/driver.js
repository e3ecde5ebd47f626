// Moves as many jobs as each line of standard input asks for through a queue, and answers each with a line. The first
// line has the versions. `node driver.js <socket of Redis> <callers> <bytes of a body>`
import { createInterface } from 'node:readline'
import { readFileSync } from 'node:fs'
import { Queue, Worker } from 'bullmq'

const [path, callers, bytes] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const connection = { path, maxRetriesPerRequest: null }
const data = 'x'.repeat(bytes)
const queue = new Queue('bench', { connection, defaultJobOptions: { removeOnComplete: true } })
await queue.waitUntilReady()

async function carry(jobs) {
  let left = jobs
  let done = 0
  let worker
  const completed = new Promise((resolve, reject) => {
    worker = new Worker('bench', async () => {}, { connection, concurrency: callers })
    worker.on('completed', () => { if (++done === jobs) resolve() })
    worker.on('failed', (_, error) => reject(error))
    worker.on('error', reject)
  })
  await Promise.all(Array.from({ length: callers }, async () => {
    while (left-- > 0) await queue.add('bench', data)
  }))
  await completed
  await worker.close()
}

const installed = (name) => JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version
console.log(JSON.stringify({ versions: { bullmq: installed('bullmq'), ioredis: installed('ioredis'), node: process.versions.node } }))
for await (const line of createInterface({ input: process.stdin })) {
  await carry(Number(line))
  console.log('{}')
}
process.exit(0)

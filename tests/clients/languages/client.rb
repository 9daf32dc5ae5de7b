# ruby client.rb variable|address PROMPT: one answer whole and one streamed, printed as they came.
require "json"
require "net/http"

how, prompt = ARGV
address = "https://api.openai.com/v1"
base = how == "variable" ? ENV.fetch("OPENAI_BASE_URL", address) : address
[false, true].each do |stream|
  asked = { model: "gpt-x", stream: stream, messages: [{ role: "user", content: prompt }] }
  answer = Net::HTTP.post(URI("#{base}/chat/completions"), asked.to_json, "content-type" => "application/json")
  puts answer.body
  exit 1 unless answer.code == "200"
end

<?php
// php client.php variable|address PROMPT: one answer whole and one streamed, printed as they came.
[, $how, $prompt] = $argv;
$address = "https://api.openai.com/v1";
$base = $how === "variable" ? (getenv("OPENAI_BASE_URL") ?: $address) : $address;
foreach ([false, true] as $stream) {
    $asked = ["model" => "gpt-x", "stream" => $stream, "messages" => [["role" => "user", "content" => $prompt]]];
    $curl = curl_init("$base/chat/completions");
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => json_encode($asked),
        CURLOPT_HTTPHEADER => ["content-type: application/json"],
        CURLOPT_RETURNTRANSFER => true,
    ]);
    $body = curl_exec($curl);
    echo $body === false ? curl_error($curl) : $body, "\n";
    if (curl_getinfo($curl, CURLINFO_RESPONSE_CODE) !== 200) {
        exit(1);
    }
}
